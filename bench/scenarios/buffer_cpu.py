"""CPU of bytes into memory over plain HTTP, against the bare-receive floor.

Both read the same objects from the same server, in turns. The floor is given both ways of asking
(whole objects, and the ranges that onecopy asks for), and the cheaper one counts. Of onecopy the
whole process is charged; what it spends before and after (a pool that is zeroed and locked once) is
left out by the slope between n and 2n bytes. The whole process at 2n is shown beside it.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import DATA, GB, MIB, RANGE_BYTES, floor, make_objects, onecopy_bench, serving, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Run

TITLE = "bytes into memory over plain HTTP"
LIMIT = "client CPU at most 1.25 x the bare-receive floor"
RATIO_MAX = 1.25
OBJECTS, OBJECT_BYTES = 16, 128 * MIB
CONNECTIONS, MEMORY = 8, 256 * MIB


def row(client: str, size: int, done: Run, cpu: float) -> dict[str, Any]:
    """Make a row of one run."""
    return {"client": client, "bytes": size, "wall": done.wall, "cpu": cpu, "answer": done.answer}


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the clients in turns."""
    keys = make_objects(Path("large"), OBJECTS, OBJECT_BYTES)
    warm(keys)
    half = keys[: OBJECTS // 2]
    options = ["--connections", str(CONNECTIONS), "--memory", "256MiB"]
    for _ in range(runs):
        # A fresh server each time: none gains from what the last one left there.
        with serving(DATA) as port:
            for way, size in (("whole", None), ("ranges", RANGE_BYTES)):
                done = floor(port, keys, CONNECTIONS, MEMORY, range_bytes=size)
                yield row(f"floor, {way}", done.answer["bytes"], done, done.answer["cpu"])
            for part in (half, keys):
                done = onecopy_bench(port, part, "buffer", *options)
                yield row("onecopy", done.answer["payload_bytes"], done, done.cpu)


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare medians."""
    total = OBJECTS * OBJECT_BYTES

    def cpu(client: str, size: int) -> float:
        found = [r["cpu"] for r in rows if r["client"] == client and r["bytes"] == size]
        return float(median(found))

    floors = {way: cpu(f"floor, {way}", total) / total * GB for way in ("whole", "ranges")}
    whole = cpu("onecopy", total) / total * GB
    slope = (cpu("onecopy", total) - cpu("onecopy", total // 2)) / (total / 2) * GB
    ledger = median(
        r["answer"]["cpu_seconds"] / r["bytes"] * GB
        for r in rows
        if r["client"] == "onecopy" and r["bytes"] == total
    )
    ratio = slope / min(floors.values())
    table = ["| client | CPU s/GB |", "|---|---|"]
    table += [f"| floor, {way} | {value:.3f} |" for way, value in floors.items()]
    table += [f"| onecopy, slope between n and 2n | {slope:.3f} |"]
    table += [f"| onecopy, whole process at 2n | {whole:.3f} |"]
    table += [f"| onecopy, as its ledger says | {ledger:.3f} |"]
    return Verdict(f"{ratio:.2f} x the floor", ratio <= RATIO_MAX, table)
