"""The first batch from a state in mid-epoch, against the first batch of an epoch.

72 shards come from a server that gives 50 MB/s to each of 8 connections and the first byte after
30 ms; 64 lanes are shuffled, of which most begin within a shard, as where there are thousands of
shards, and each gives one sample of a batch. Begun and resumed in turns, each by a process of its
own; with an index and without. The ratio is taken in each turn, and the median of the ratios is
given. What was received by then is told beside it: a window that was begun is read again, so a run
that is resumed reads whole windows where one that begins reads first windows, which are half as
long on average.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from counted_shards import Shards, order
from measuring import BUCKET, MIB, faulty, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "first batch from a state in mid-epoch"
LIMIT = "at most 1.2 x the time of the first batch of an epoch, with an index and without"
RATIO_MAX = 1.2
SHARDS = Shards("resume", 72, 250, 100_000)
STEPS = 120  # of 282: of the middle of the epoch, and of no lane's window the beginning
CONNECTIONS, RATE, FIRST_BYTE_MS = 8, 50_000_000, 30
LANES = 64
# Windows of 16 samples (1.6 MB) of each lane, and of 157: 1 GB in all.
SHUFFLES = (1000, 10_000)
CASES, WAYS = ("index", "no index"), ("begun", "resumed")


def asked(case: str, shuffle: int, port: int) -> dict[str, Any]:
    """Return what a process is asked for."""
    opened = {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "no_sign_request": True,
        "memory": "2GiB",
        "lanes": LANES,
        "connections": CONNECTIONS,
    }
    if case == "index":
        opened["index"] = f"s3://{BUCKET}/index/index.json"
    urls = f"s3://{BUCKET}/shards/"
    return {"urls": urls, "opened": opened, "shuffle": shuffle, "fields": ["npy"]}


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Go to the middle once, over a fast link; then begin and resume in turns."""
    SHARDS.make()
    warm(SHARDS.keys)
    root = ["--root", str(SHARDS.place)]
    cases = [(case, shuffle) for case in CASES for shuffle in SHUFFLES]
    states = {}
    with faulty(*root) as port:
        for case, shuffle in cases:
            question = {**asked(case, shuffle, port), "steps": STEPS}
            answer = order("state", question).answer
            states[case, shuffle] = answer["state"]
            yield {"case": case, "shuffle": shuffle, "way": "state", **answer}
    timing = ["--bytes-per-second", str(RATE), "--first-byte-ms", str(FIRST_BYTE_MS)]
    for _ in range(runs):
        for case, shuffle in cases:
            for way in WAYS:
                with faulty(*timing, *root) as port:
                    question = asked(case, shuffle, port)
                    if way == "resumed":
                        question["state"] = states[case, shuffle]
                    answer = order("first", question).answer
                yield {"case": case, "shuffle": shuffle, "way": way, **answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn."""

    def figures(case: str, shuffle: int, way: str, name: str) -> list[float]:
        return [
            r[name] for r in rows if (r["case"], r["shuffle"], r["way"]) == (case, shuffle, way)
        ]

    table = [
        "| shuffle | | begun: s | MiB received | resumed: s | MiB received | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for case in CASES:
        for shuffle in SHUFFLES:
            seconds = [figures(case, shuffle, way, "seconds") for way in WAYS]
            turns = zip(*seconds, strict=True)
            ratios.append(median(resumed / begun for begun, resumed in turns))
            cells = [f"| {shuffle} | {case}"]
            for way, took in zip(WAYS, seconds, strict=True):
                received = median(figures(case, shuffle, way, "received_bytes"))
                cells.append(f"{median(took):.2f} | {received / MIB:.0f}")
            table.append(" | ".join([*cells, f"{ratios[-1]:.2f} |"]))
    states = [r["state_bytes"] for r in rows if r["way"] == "state"]
    table += ["", f"States are of {min(states)} to {max(states)} bytes as JSON."]
    figure = f"{max(ratios):.2f} x where it is most, {min(ratios):.2f} x where it is least"
    return Verdict(figure, max(ratios) <= RATIO_MAX, table)
