"""CPU of bytes into memory over plain HTTP, against the bare-receive floor.

Both read the same objects from the same server, in turns. The floor is given both ways of asking
(whole objects, and the ranges that onecopy asks for), and the cheaper one counts. Of both the whole
process is charged, from exec to exit: both touch the memory that they keep, once. The ratio is
taken in each turn, and the median of the ratios is given. The floor holds the bytes against no
checksum, so the claim is about a run of onecopy that does not, either; what it takes with the
checksum that the server has of them (CRC64NVME) is told beside it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import (
    DATA,
    GB,
    MIB,
    RANGE_BYTES,
    floor,
    make_objects,
    need_verified,
    onecopy_bench,
    serving,
    sum_up,
    warm,
)
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Run

TITLE = "bytes into memory over plain HTTP"
LIMIT = "client CPU at most 1.10 x the bare-receive floor, without checksums"
RATIO_MAX = 1.10
FOLDER, OBJECTS, OBJECT_BYTES = Path("large"), 16, 128 * MIB
CONNECTIONS, MEMORY = 8, 256 * MIB


def row(client: str, size: int, done: Run, cpu: float) -> dict[str, Any]:
    """Make a row of one run."""
    return {"client": client, "bytes": size, "wall": done.wall, "cpu": cpu, "answer": done.answer}


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the clients in turns."""
    keys = make_objects(FOLDER, OBJECTS, OBJECT_BYTES)
    warm(keys)
    sum_up(keys)
    options = ["--connections", str(CONNECTIONS), "--memory", "256MiB"]
    for _ in range(runs):
        # A fresh server each time: none gains from what the last one left there.
        with serving(DATA, has_sums=True) as port:
            for way, size in (("whole", None), ("ranges", RANGE_BYTES)):
                done = floor(port, keys, CONNECTIONS, MEMORY, range_bytes=size)
                yield row(f"floor, {way}", done.answer["bytes"], done, done.cpu)
            done = onecopy_bench(port, keys, "buffer", *options)
            need_verified(done, OBJECTS)
            yield row("onecopy", done.answer["payload_bytes"], done, done.cpu)
            done = onecopy_bench(port, keys, "buffer", *options, "--no-verify-checksum")
            yield row("onecopy, unverified", done.answer["payload_bytes"], done, done.cpu)


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn."""
    clients = ("floor, whole", "floor, ranges", "onecopy", "onecopy, unverified")
    cpu = {
        client: [r["cpu"] / r["bytes"] * GB for r in rows if r["client"] == client]
        for client in clients
    }
    turns = list(zip(*cpu.values(), strict=True))
    ratio = median(ours / min(whole, ranges) for whole, ranges, ours, _ in turns)
    bare = median(ours / min(whole, ranges) for whole, ranges, _, ours in turns)
    table = ["| client | CPU s/GB, median | least | most |", "|---|---|---|---|"]
    table += [
        f"| {client} | {median(every):.3f} | {min(every):.3f} | {max(every):.3f} |"
        for client, every in cpu.items()
    ]
    return Verdict(
        f"{bare:.2f} x the floor, and {ratio:.2f} x with checksums", bare <= RATIO_MAX, table
    )
