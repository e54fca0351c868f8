"""When the first batch comes from a cold start, on a link slow enough to see what it waited for.

One shard of 256 MiB comes over 100 MB/s in total, on two connections; a batch is small. By the time
the first batch is out, two ranges of 8 MiB may have come (0.17 s), not the shard (2.7 s).
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import DATA, MIB, RANGE_BYTES, make_shard, onecopy_bench, serving
from scenarios import Verdict
from scenarios.slow_link import slow_link

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "first batch from a cold start"
LIMIT = "after at most two ranges of one shard, with 0.1 s to start"
BYTES_PER_SECOND = 100e6
START_SECONDS_MAX = 0.1
MEMBERS, MEMBER_BYTES, BATCH = 256, MIB, 4


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Read the shard to its end each time."""
    key = make_shard("first-batch", MEMBERS, MEMBER_BYTES)
    options = ["--connections", "2", "--memory", "256MiB", "--batch", str(BATCH)]
    for _ in range(runs):
        with serving(DATA) as port, slow_link(port, BYTES_PER_SECOND) as slow:
            done = onecopy_bench(slow, [key], "batch", *options)
        yield {"answer": done.answer, "wall": done.wall}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare with the time that two ranges take."""
    first = median(r["answer"]["first_batch_seconds"] for r in rows)
    whole = median(r["answer"]["seconds"] for r in rows)
    ranges = 2 * RANGE_BYTES / BYTES_PER_SECOND
    table = ["| | seconds |", "|---|---|", f"| two ranges on this link | {ranges:.2f} |"]
    table += [f"| first batch | {first:.2f} |", f"| whole shard | {whole:.2f} |"]
    return Verdict(f"{first:.2f} s", first <= ranges + START_SECONDS_MAX, table)
