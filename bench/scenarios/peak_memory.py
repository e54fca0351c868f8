"""Peak memory with a pool of 256 MiB, at 1 GiB and at 4 GiB of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import DATA, MIB, make_objects, onecopy_bench, serving
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "peak memory"
LIMIT = "pool + 150 MiB, whatever the dataset's size"
POOL = 256 * MIB
OVER_MAX = 150 * MIB
SIZES = (1024 * MIB, 4096 * MIB)
OBJECT_BYTES = 1024 * MIB


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Read objects without content (sparse files), so that the data need not be stored."""
    keys = make_objects(Path("sparse"), SIZES[-1] // OBJECT_BYTES, OBJECT_BYTES, sparse=True)
    for _ in range(min(runs, 3)):
        for size in SIZES:
            with serving(DATA) as port:
                some = keys[: size // OBJECT_BYTES]
                done = onecopy_bench(port, some, "buffer", "--memory", "256MiB")
            yield {"bytes": size, "peak_rss_bytes": done.peak_rss_bytes, "answer": done.answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Take the highest of all runs."""
    peak = {s: max(r["peak_rss_bytes"] for r in rows if r["bytes"] == s) for s in SIZES}
    table = ["| data | peak RSS | over the pool |", "|---|---|---|"]
    table += [
        f"| {size // MIB} MiB | {rss / MIB:.0f} MiB | {(rss - POOL) / MIB:.0f} MiB |"
        for size, rss in peak.items()
    ]
    over = max(peak.values()) - POOL
    return Verdict(f"pool + {over / MIB:.0f} MiB", over <= OVER_MAX, table)
