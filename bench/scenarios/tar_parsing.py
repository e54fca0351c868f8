"""Tar parsing alone, in samples per second, against Python's tarfile.

tarfile reads a shard that is already in memory and gives every member as bytes. onecopy reads the
same shard as a file in the page cache, once into memory only and once into samples; the difference
is what parsing and grouping cost. Both are CPU seconds, over all threads.
"""

from __future__ import annotations

import io
import tarfile
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import BUCKET, DATA, MIB, ONECOPY, make_shard, run, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command

TITLE = "tar parsing alone"
LIMIT = "at least 20 x Python's tarfile in samples/s"
TIMES_MIN = 20
SAMPLES, SAMPLE_BYTES = 20_000, 8192


def by_tarfile(shard: bytes) -> float:
    """Read every member of a shard in memory; return the seconds of CPU."""
    began = time.process_time()
    samples: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(shard), mode="r:") as archive:
        for member in archive:
            key, _, field = member.name.partition(".")
            body = archive.extractfile(member)
            assert body is not None  # noqa: S101 - every member is a file
            samples.setdefault(key, {})[field] = body.read()
    assert len(samples) == SAMPLES  # noqa: S101 - else the time is of something else
    return time.process_time() - began


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run both in turns."""
    key = make_shard("tar-parsing", SAMPLES, SAMPLE_BYTES)
    warm([key])
    file = DATA / BUCKET / key
    for _ in range(runs):
        yield {"reader": "tarfile", "seconds": by_tarfile(file.read_bytes())}
        for to in ("buffer", "sample"):
            command: Command = [ONECOPY, "bench", file, "--to", to, "--json", "--memory", "512MiB"]
            done = run(command)
            yield {"reader": f"onecopy to {to}", "seconds": done.cpu, "answer": done.answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare medians."""

    def seconds(reader: str) -> float:
        return float(median(r["seconds"] for r in rows if r["reader"] == reader))

    theirs = seconds("tarfile")
    # Never below what one clock tick of the kernel's accounting could hide.
    ours = max(seconds("onecopy to sample") - seconds("onecopy to buffer"), 0.001)
    table = ["| reader | samples/s |", "|---|---|"]
    table += [f"| {name} | {SAMPLES / s:,.0f} |" for name, s in [("tarfile", theirs), ("us", ours)]]
    table += ["", f"{SAMPLES} samples of two fields, {SAMPLES * SAMPLE_BYTES // MIB} MiB."]
    return Verdict(f"{theirs / ours:.0f} x", theirs / ours >= TIMES_MIN, table)
