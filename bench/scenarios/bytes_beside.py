"""Bytes of objects into memory by onecopy and by other clients, on one core each, over plain HTTP.

Large objects (8 of 256 MiB) and small ones (2000 of 100 KB) from the same server, in turns. Every
client signs its requests but the floor, which is given them ready-made. The other clients are
charged from their first request to their last byte; onecopy and the floor for their whole process,
from exec to exit. onecopy holds the bytes against the checksums that the server gives (CRC64NVME),
as others may; the floor does not, so it is compared with onecopy without that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import (
    BUCKET,
    DATA,
    GB,
    MIB,
    RANGE_BYTES,
    RIVALS_PYTHON,
    ROOT,
    floor,
    make_objects,
    need_verified,
    onecopy_bench,
    run,
    serving,
    sum_up,
    warm,
)
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command

TITLE = "bytes into memory, beside other clients"
LIMIT = (
    "large objects: at most 0.55 x the CPU of the best other and, without checksums, 1.10 x the "
    "floor; "
    "more small objects a second than every other"
)
RATIO_MAX, FLOOR_MAX = 0.55, 1.10
SETS = {"large": (8, 256 * MIB), "small": (2000, 100_000)}
RIVALS = ("boto3", "obstore", "s3torchconnector", "s3fs", "runai")
CLIENTS = ("floor", "onecopy, unverified", "onecopy", *RIVALS)
CONNECTIONS, MEMORY = 8, 256 * MIB


def fetch(client: str, port: int, folder: str, keys: list[str]) -> dict[str, Any]:
    """Fetch all of a set by one client, once."""
    size = SETS[folder][1]
    if client == "floor":
        range_bytes = RANGE_BYTES if size > RANGE_BYTES else None
        done = floor(port, keys, CONNECTIONS, MEMORY, range_bytes=range_bytes)
        return {"bytes": done.answer["bytes"], "seconds": done.wall, "cpu_seconds": done.cpu}
    if client.startswith("onecopy"):
        options = ["--connections", str(CONNECTIONS), "--memory", str(MEMORY)]
        if client == "onecopy, unverified":
            options += ["--no-verify-checksum"]
        done = onecopy_bench(port, [f"beside-{folder}/**"], "buffer", *options)
        if client == "onecopy":
            need_verified(done, len(keys))
        read = done.answer["payload_bytes"]
        return {"bytes": read, "seconds": done.wall, "cpu_seconds": done.cpu}
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as listed:
        listed.write("\n".join(keys))
        listed.flush()
        command: Command = [
            RIVALS_PYTHON,
            ROOT / "bench" / "rivals" / "bytes_by.py",
            *(client, str(port), BUCKET, str(size), listed.name),
        ]
        return run(command).answer


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the clients in turns."""
    for folder, (count, size) in SETS.items():
        keys = make_objects(Path(f"beside-{folder}"), count, size)
        warm(keys)
        sum_up(keys)
        for _ in range(runs):
            # A fresh server each time: none gains from what the last one left there.
            with serving(DATA, has_sums=True) as port:
                for client in CLIENTS:
                    row = fetch(client, port, folder, keys)
                    if row["bytes"] != count * size:
                        raise RuntimeError(f"{client} fetched {row['bytes']} bytes of {folder}")
                    yield {"set": folder, "client": client, **row}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn, and put the medians side by side."""
    table = [
        "| objects | client | CPU s/GB | GB/s | objects/s |",
        "|---|---|---|---|---|",
    ]
    cpu: dict[tuple[str, str], list[float]] = {}
    rate: dict[tuple[str, str], float] = {}
    for folder, (count, size) in SETS.items():
        for client in CLIENTS:
            mine = [r for r in rows if (r["set"], r["client"]) == (folder, client)]
            cpu[folder, client] = [r["cpu_seconds"] / r["bytes"] * GB for r in mine]
            rate[folder, client] = median(count / r["seconds"] for r in mine)
            table.append(
                f"| {count} x {size} bytes | {client} | {median(cpu[folder, client]):.3f} "
                f"| {rate[folder, client] * size / GB:.2f} | {rate[folder, client]:.0f} |"
            )
    large = [cpu["large", client] for client in CLIENTS]
    turns = list(zip(*large, strict=True))
    to_floor = median(ours / bare for bare, ours, *_others in turns)
    to_best = median(ours / min(others) for _floor, _unverified, ours, *others in turns)
    lead = rate["small", "onecopy"] / max(rate["small", client] for client in RIVALS)
    figure = (
        f"large: {to_floor:.2f} x the floor, {to_best:.2f} x the best other; "
        f"small: {lead:.1f} x the objects/s of the fastest other"
    )
    return Verdict(figure, to_floor <= FLOOR_MAX and to_best <= RATIO_MAX and lead > 1, table)
