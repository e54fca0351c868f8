"""Tar parsing alone, in samples per second, against Python's tarfile.

Both read the same shard, which is already in memory, on one thread: tarfile gives every member as
bytes, onecopy (crates/onecopy/examples/tar_bench.rs) every sample as slices.
"""

from __future__ import annotations

import io
import tarfile
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import BUCKET, DATA, MIB, TAR_BENCH, make_shard, run, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "tar parsing alone"
LIMIT = "at least 20 x Python's tarfile in samples/s"
TIMES_MIN = 20
SAMPLES, SAMPLE_BYTES = 20_000, 8192
OUR_SECONDS = 2


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
        answer = run([TAR_BENCH, file, str(OUR_SECONDS)]).answer
        assert answer["samples"] == answer["passes"] * SAMPLES  # noqa: S101 - as above
        seconds = answer["seconds"] / answer["passes"]
        yield {"reader": "onecopy", "seconds": seconds, "answer": answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare medians."""

    def seconds(reader: str) -> float:
        return float(median(r["seconds"] for r in rows if r["reader"] == reader))

    theirs, ours = seconds("tarfile"), seconds("onecopy")
    table = ["| reader | samples/s |", "|---|---|"]
    table += [
        f"| {name} | {SAMPLES / s:,.0f} |" for name, s in [("tarfile", theirs), ("onecopy", ours)]
    ]
    table += ["", f"{SAMPLES} samples of two fields, {SAMPLES * SAMPLE_BYTES // MIB} MiB."]
    return Verdict(f"{theirs / ours:.0f} x", theirs / ours >= TIMES_MIN, table)
