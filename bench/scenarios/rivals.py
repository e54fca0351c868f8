"""The same shards into batches of torch tensors by onecopy and by others, on one core each.

Two questions, in one run: how often each payload byte is copied in user space (the slope between n
and 2n shards under the LD_PRELOAD counter, once: it is a count; with pictures it holds the
decoders' own copies of pixels, too), and how many samples a second one core makes and what CPU they
take (without the counter, in turns). Arrays of 1 MB; pictures of 500 x 375 brought to 224 x 224.
Every program gives the same samples, which the sum of the labels shows.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import BUCKET, DATA, ROOT, TESTKIT, counted, run, serving, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command

TITLE = "shards into torch batches, beside others"
LIMIT = "fewer user-space copies and less CPU per sample than every one of them"
PROGRAMS = ("onecopy", "webdataset", "boto3")
SETS = {"npy": ("npy", 1_000_000, 256), "jpg": ("jpg", 110_000, 512)}
SHARDS = 4


def shards(kind: str) -> list[str]:
    """Make the shards once; return their keys."""
    what, sample_bytes, samples = SETS[kind]
    folder = DATA / BUCKET / f"rivals-{kind}"
    if not folder.exists():
        command: Command = [
            TESTKIT,
            "shards",
            folder,
            *("--kind", what, "--shards", str(SHARDS), "--samples", str(samples)),
            *("--sample-bytes", str(sample_bytes)),
        ]
        subprocess.run(command, check=True, capture_output=True)
    return sorted(f"rivals-{kind}/{file.name}" for file in folder.iterdir())


def program(name: str, kind: str, port: int, keys: list[str]) -> Command:
    """Return the command that reads these shards by one of the programs."""
    urls = [f"http://127.0.0.1:{port}/{BUCKET}/{key}" for key in keys]
    return [sys.executable, ROOT / "bench" / "rivals" / f"by_{name}.py", kind, *urls]


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Count once, then time in turns."""
    for kind in SETS:
        keys = shards(kind)
        warm(keys)
        half = keys[: SHARDS // 2]
        payload = [
            sum((DATA / BUCKET / key).stat().st_size for key in part) for part in (half, keys)
        ]
        with serving(DATA) as port:
            for name in PROGRAMS:
                copied = [
                    counted(program(name, kind, port, part))["copied"] for part in (half, keys)
                ]
                per_byte = (copied[1] - copied[0]) / (payload[1] - payload[0])
                yield {"set": kind, "program": name, "copies_per_byte": per_byte}
            for _ in range(runs):
                for name in PROGRAMS:
                    answer = run(program(name, kind, port, keys)).answer
                    yield {"set": kind, "program": name, **answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Put them side by side."""
    table = [
        "| samples | program | user-space copies per byte | samples/s | CPU s per 1000 samples |",
        "|---|---|---|---|---|",
    ]
    holds = True
    for kind in SETS:
        figures = {}
        for name in PROGRAMS:
            mine = [r for r in rows if (r["set"], r["program"]) == (kind, name)]
            timed = [r for r in mine if "seconds" in r]
            figures[name] = (
                next(r["copies_per_byte"] for r in mine if "copies_per_byte" in r),
                median(r["samples"] / r["seconds"] for r in timed),
                median(r["cpu_seconds"] / r["samples"] * 1000 for r in timed),
            )
            copies, rate, cpu = figures[name]
            table.append(f"| {kind} | {name} | {copies:.2f} | {rate:.0f} | {cpu:.2f} |")
        timed = [r for r in rows if r["set"] == kind and "labels" in r]
        holds &= len({(r["samples"], r["labels"]) for r in timed}) == 1
        others = [figures[name] for name in PROGRAMS[1:]]
        ours = figures["onecopy"]
        holds &= all(ours[0] < one[0] and ours[2] < one[2] for one in others)
    fastest = [f"{kind}: {_lead(rows, kind):.1f} x" for kind in SETS]
    return Verdict(f"rate against the best other, {', '.join(fastest)}", holds, table)


def _lead(rows: list[dict[str, Any]], kind: str) -> float:
    def rate(name: str) -> float:
        timed = [r for r in rows if (r["set"], r["program"]) == (kind, name) and "seconds" in r]
        return float(median(r["samples"] / r["seconds"] for r in timed))

    return rate("onecopy") / max(rate(name) for name in PROGRAMS[1:])
