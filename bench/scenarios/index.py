"""`onecopy index` of 1,000 shards of 100 MB, whose members of 1 MB are passed over.

The fault server gives 50 MB/s to each connection and the first byte of every answer after 30 ms.
The shards are one sparse file of headers by 1,000 names, of which it holds nothing in memory. Each
member costs one small request, and as many shards are under way as the command takes at a time; so
the least that it can take is what all requests wait, over that number. What is written (offsets of
each shard and the index) goes to a folder of this machine.
"""

from __future__ import annotations

import shutil
from statistics import median
from typing import TYPE_CHECKING, Any

from counted_shards import Shards
from measuring import BUCKET, DATA, ONECOPY, faulty, run
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command

TITLE = "index of 1,000 shards of 100 MB"
LIMIT = (
    "less than 1.3 x what the requests wait, over the shards under way at a time; less than half "
    "of the time on the CPU; less than 2 % of the bytes read"
)
TIMES_MAX, BUSY_MAX, READ_MAX = 1.3, 0.5, 0.02
SHARDS = Shards("index", 1000, 100, 1_000_000, field="bin", is_sparse=True)
RATE, FIRST_BYTE_MS = 50_000_000, 30
AT_ONCE = 128  # shards under way, by `onecopy index --help`
MEMORY = "2GiB"  # enough for as many


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Index anew each time."""
    SHARDS.make()
    out = DATA / "index-out"
    timing = ["--bytes-per-second", str(RATE), "--first-byte-ms", str(FIRST_BYTE_MS)]
    for _ in range(min(runs, 3)):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        with faulty(*timing, "--root", str(SHARDS.place)) as port:
            command: Command = [
                *(ONECOPY, "index", f"s3://{BUCKET}/shards/", "--out", out, "--json", "--quiet"),
                *("--memory", MEMORY, "--endpoint-url", f"http://127.0.0.1:{port}"),
                *("--region", "us-east-1", "--no-sign-request"),
            ]
            done = run(command, timeout=900)
        yield {"seconds": done.wall, "cpu_seconds": done.cpu, "answer": done.answer}
    shutil.rmtree(out, ignore_errors=True)


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Hold the medians against what the requests wait."""
    seconds = median(r["seconds"] for r in rows)
    cpu = median(r["cpu_seconds"] for r in rows)
    requests = median(r["answer"]["requests"] for r in rows)
    read = median(r["answer"]["read_bytes"] for r in rows)
    sizes = {(r["answer"]["samples"], r["answer"]["shard_bytes"]) for r in rows}
    whole = SHARDS.shards * SHARDS.shard_bytes
    least = requests * FIRST_BYTE_MS / 1000 / min(AT_ONCE, SHARDS.shards)
    share, busy, times = read / whole, cpu / seconds, seconds / least
    holds = times < TIMES_MAX and busy < BUSY_MAX and share < READ_MAX
    holds &= sizes == {(SHARDS.shards * SHARDS.samples, whole)}
    table = [
        "| seconds | least | requests | read | CPU s |",
        "|---|---|---|---|---|",
        f"| {seconds:.1f} | {least:.1f} | {requests:.0f} | {share:.2%} | {cpu:.1f} |",
    ]
    figure = f"{times:.2f} x what the requests wait, {busy:.0%} of it on the CPU, {share:.2%} read"
    return Verdict(figure, holds, table)
