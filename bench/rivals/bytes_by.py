# ruff: noqa: PLC0415 - each client is imported only where it is the one that is asked for
# mypy: disable-error-code="import-not-found,import-untyped"
"""Fetch objects into memory by one client, drop them, and print what it took.

bytes_by.py CLIENT PORT BUCKET OBJECT_BYTES LIST: LIST is a file of keys, one a line. Each client is
used as its documentation shows, with as many requests in flight as onecopy has. What is printed
leaves out imports and the making of the client.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

CONNECTIONS = 8
RANGE_BYTES = 8 << 20
KEY_ID, SECRET, REGION = "benchkey", "benchsecret", "us-east-1"


class Task:
    """What is to be fetched, and from where."""

    def __init__(self, port: str, bucket: str, size: str, keys: str) -> None:
        """Take the words of the command line."""
        self.endpoint = f"http://127.0.0.1:{port}"
        self.bucket = bucket
        self.size = int(size)
        self.keys = Path(keys).read_text().split()

    def in_threads(self, one: Callable[[str], int]) -> int:
        """Fetch each key in one of the threads."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return sum(pool.map(one, self.keys))

    def in_tasks(self, one: Callable[..., Awaitable[int]], items: Iterable[Any]) -> int:
        """Fetch each item in a task, so many at once."""

        async def all_of_them() -> int:
            gate = asyncio.Semaphore(CONNECTIONS)

            async def gated(item: Any) -> int:
                async with gate:
                    return await one(item)

            return sum(await asyncio.gather(*(gated(item) for item in items)))

        return asyncio.run(all_of_them())


def boto3(task: Task) -> Callable[[], int]:
    """One GET for each object."""
    import boto3 as package
    from botocore.config import Config

    config = Config(max_pool_connections=CONNECTIONS, s3={"addressing_style": "path"})
    keys = {"aws_access_key_id": KEY_ID, "aws_secret_access_key": SECRET}
    client = package.client(
        "s3", endpoint_url=task.endpoint, region_name=REGION, config=config, **keys
    )

    def one(key: str) -> int:
        return len(client.get_object(Bucket=task.bucket, Key=key)["Body"].read())

    return lambda: task.in_threads(one)


def _obstore(task: Task) -> Any:
    from obstore.store import S3Store

    return S3Store(
        task.bucket,
        endpoint=task.endpoint,
        region=REGION,
        access_key_id=KEY_ID,
        secret_access_key=SECRET,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )


def obstore(task: Task) -> Callable[[], int]:
    """Ranges of large objects, small ones whole."""
    import obstore as package

    store = _obstore(task)

    async def whole(key: str) -> int:
        return len(await (await package.get_async(store, key)).bytes_async())

    async def part(place: tuple[str, int]) -> int:
        key, start = place
        end = min(start + RANGE_BYTES, task.size)
        return len(await package.get_range_async(store, key, start=start, end=end))

    if task.size <= RANGE_BYTES:
        return lambda: task.in_tasks(whole, task.keys)
    places = [(key, start) for key in task.keys for start in range(0, task.size, RANGE_BYTES)]
    return lambda: task.in_tasks(part, places)


def s3torchconnector(task: Task) -> Callable[[], int]:
    """Its client's objects, read whole."""
    from s3torchconnector import S3ClientConfig
    from s3torchconnector._s3client import S3Client

    client = S3Client(
        REGION, endpoint=task.endpoint, s3client_config=S3ClientConfig(force_path_style=True)
    )
    return lambda: task.in_threads(lambda key: len(client.get_object(task.bucket, key).read()))


def s3fs(task: Task) -> Callable[[], int]:
    """Its cat, so many objects at once."""
    import s3fs as package

    system = package.S3FileSystem(
        key=KEY_ID,
        secret=SECRET,
        client_kwargs={"endpoint_url": task.endpoint, "region_name": REGION},
        config_kwargs={"s3": {"addressing_style": "path"}},
    )
    system.connect()

    def go() -> int:
        total = 0
        for start in range(0, len(task.keys), CONNECTIONS):
            paths = [f"{task.bucket}/{key}" for key in task.keys[start : start + CONNECTIONS]]
            total += sum(len(body) for body in system.cat(paths).values())
        return total

    return go


def runai(task: Task) -> Callable[[], int]:
    """Its streamer: ranges by its own threads into its own ring."""
    os.environ.update(
        AWS_ENDPOINT_URL=task.endpoint,
        RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING="0",
        RUNAI_STREAMER_CONCURRENCY=str(CONNECTIONS),
        RUNAI_STREAMER_MEMORY_LIMIT=str(1 << 30),
    )
    from runai_model_streamer import FileChunks, FileStreamer

    def go() -> int:
        part = min(RANGE_BYTES, task.size)
        chunks = [
            FileChunks.contiguous(
                number, f"s3://{task.bucket}/{key}", 0, [part] * (task.size // part)
            )
            for number, key in enumerate(task.keys)
        ]
        with FileStreamer() as streamer:
            streamer.stream_files(chunks)
            return sum(tensor.numel() for _, _, tensor in streamer.get_chunks())

    return go


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those it has waited for."""
    every = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in every)


CLIENTS = {one.__name__: one for one in (boto3, obstore, s3torchconnector, s3fs, runai)}


def main() -> int:
    """Fetch everything once."""
    name, *words = sys.argv[1:]
    os.environ.update(
        AWS_ACCESS_KEY_ID=KEY_ID,
        AWS_SECRET_ACCESS_KEY=SECRET,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
    )
    task = Task(*words)
    go = CLIENTS[name](task)
    wall, cpu = time.monotonic(), cpu_seconds()
    fetched = go()
    took = {"seconds": time.monotonic() - wall, "cpu_seconds": cpu_seconds() - cpu}
    print(json.dumps({"bytes": fetched, **took}), flush=True)
    # Not by sys.exit: obstore 0.12.1 aborts when the interpreter ends.
    os._exit(0 if fetched == task.size * len(task.keys) else 3)


if __name__ == "__main__":
    sys.exit(main())
