"""Real S3 servers, started as programs of their own on free ports of 127.0.0.1."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCESS_KEY = "onecopytest"
SECRET_KEY = "made-up/secret+for=tests"
REGION = "us-east-1"
READY_SECONDS = 60
STARTS = 3
RELEASE = Path(__file__).parents[2] / "target/release"
TESTKIT, ONECOPY = RELEASE / "onecopy-testkit", RELEASE / "onecopy"


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    endpoint_url: str

    def client(self, secret_key: str = SECRET_KEY) -> Any:
        """Return a boto3 client for it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=secret_key,
            region_name=REGION,
            config=Config(
                s3={"addressing_style": "path"},
                retries={"max_attempts": 1},
                connect_timeout=5,
                read_timeout=30,
            ),
        )


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def wait_until_ready(server: Server, process: subprocess.Popen[bytes]) -> bool:
    """Wait until an object can be written and read back; False if the program ended before."""
    client, last = server.client(), "no answer"
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        try:
            with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket="ready")
            client.put_object(Bucket="ready", Key="key", Body=b"there")
            if client.get_object(Bucket="ready", Key="key")["Body"].read() == b"there":
                return True
        except (BotoCoreError, ClientError) as error:
            last = str(error)
        time.sleep(0.2)
    raise TimeoutError(f"{server.name} was not ready after {READY_SECONDS} s: {last}")


@contextlib.contextmanager
def running(server: Server, command: list[str], log: Path) -> Iterator[Server | None]:
    """Run a server; gives None if it ended before it was ready (its port may have been taken)."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=log.parent
        )
        try:
            yield server if wait_until_ready(server, process) else None
        finally:
            process.terminate()
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()  # SeaweedFS takes half a minute to say good-bye; nothing is kept
                process.wait()


@contextlib.contextmanager
def started(name: str, folder: Path) -> Iterator[Server]:
    """Start a server by name, again on other ports if it did not come up."""
    log = folder / f"{name}.log"
    for _ in range(STARTS):
        port, command = COMMANDS[name](folder)
        with running(Server(name, f"http://127.0.0.1:{port}"), command, log) as server:
            if server is not None:
                yield server
                return
    raise RuntimeError(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")


def seaweedfs(folder: Path) -> tuple[int, list[str]]:
    """Return the port and the command line of SeaweedFS: master, volume, filer and S3 in one."""
    weed = Path(sys.executable).parent / "weed"
    ports = free_ports(8)
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    who = {"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [who]}))
    data = folder / "seaweedfs"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    names = ["master.port", "volume.port", "filer.port", "s3.port"]
    names += [f"{name}.grpc" for name in names]
    return ports[3], [
        str(weed),
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}={port}" for name, port in zip(names, ports, strict=True)),
        "-filer",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=128",
        "-volume.max=0",
    ]


def moto(_folder: Path) -> tuple[int, list[str]]:
    """Return the port and the command line of moto's server."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    return port, command


COMMANDS = {"seaweedfs": seaweedfs, "moto": moto}


@contextlib.contextmanager
def serving(root: Path) -> Iterator[str]:
    """Serve the folders in ``root`` as buckets, by the testkit; gives the endpoint."""
    (port,) = free_ports(1)
    account = ("--key", ACCESS_KEY, "--secret", SECRET_KEY)
    command = [TESTKIT, "serve", "--root", root, *account, "--port", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                with contextlib.closing(socket.socket()) as attempt:
                    if attempt.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def environment() -> dict[str, str]:
    """Return the AWS_* variables with which a client finds these credentials and no others."""
    ours = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    others = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return others | ours
