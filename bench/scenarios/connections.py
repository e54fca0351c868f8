"""Connections of 50 MB/s each: what a number of them reaches, and how soon after refusals."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

from measuring import CLIENT_CORE, MIB, ONECOPY, faulty, floor_of, onecopy_bench, ranges
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "connections of 50 MB/s"
LIMIT = (
    "95 % of N x 50 MB/s with the default range, or 98 % of the floor where the machine carries "
    "less than that, and 90 % of the rate again within 5 s of a burst of 503"
)
RATE = 50_000_000  # bytes per second, of each connection
FIRST_BYTE_MS = 30
COUNTS = (1, 4, 16)
# By default ranges are joined where waiting costs much; at 8 MiB the first byte takes 15 %.
RANGES = (None, 8 * MIB)
SECONDS = 24  # how long a run takes at the full rate; the start and the end of a load are slower
REACH_MIN = 0.95
# The floor reads as much in as many requests as a connection needs at best, so it reaches 97.6 %.
FLOOR_READS = 18
FLOOR_MEMORY = 64 * MIB  # of each connection
OF_FLOOR_MIN = 0.98
REFUSING = (4.0, 2.0)  # from so many seconds after the first request, for so many
REFUSED_CONNECTIONS = 4
WINDOW = 0.25  # seconds
SUSTAINED = 8  # windows that must bring the rate on average, so that no backlog passes for it
BACK = 0.9
BACK_MAX = 5.0


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Read one made-up object for each run."""
    for turn in range(min(runs, 3)):
        for count in COUNTS:
            yield reference(count)
            for range_bytes in RANGES:
                # What a given range costs is shown once.
                if range_bytes is None or turn == 0:
                    yield reach(count, range_bytes)
        yield recovery()


def even(*more: str) -> list[str]:
    """Return the options of a server with this rate and first byte."""
    return ["--bytes-per-second", str(RATE), "--first-byte-ms", str(FIRST_BYTE_MS), *more]


def reference(count: int) -> dict[str, Any]:
    """Read the same by the floor: what this machine carries just now, server and client."""
    size = count * RATE * SECONDS
    lines = ranges(f"ok/{size}/object", size, size // (count * FLOOR_READS))
    with faulty(*even()) as port:
        done = floor_of(port, lines, count, count * FLOOR_MEMORY)
    rate = done.answer["bytes"] / done.answer["wall"]
    share = rate / (count * RATE)
    return {"case": "floor", "connections": count, "bytes_per_second": rate, "share": share}


def reach(count: int, range_bytes: int | None) -> dict[str, Any]:
    """Read for some seconds over so many connections."""
    size = count * RATE * SECONDS
    options = ["--connections", str(count)]
    if range_bytes is not None:
        options += ["--range", str(range_bytes)]
    with faulty(*even()) as port:
        done = onecopy_bench(port, [f"ok/{size}/object"], "buffer", *options)
    rate = done.answer["payload_bytes"] / done.answer["seconds"]
    share = rate / (count * RATE)
    network = done.answer["network"]
    return {
        "case": "reach",
        "connections": count,
        "range_bytes": range_bytes,
        "bytes_per_second": rate,
        "share": share,
        "network": network,
        "retries": done.answer["retries"],
    }


def recovery() -> dict[str, Any]:
    """Read through a burst of refusals, and note when the bytes come out."""
    after, lasting = REFUSING
    refusing = ["--refuse-after-ms", str(int(after * 1000))]
    refusing += ["--refuse-for-ms", str(int(lasting * 1000))]
    size = REFUSED_CONNECTIONS * RATE * 16
    with faulty(*even(*refusing)) as port:
        bursts = timeline(port, size)
    # Bytes per second, in windows since the first request.
    windows = [0.0] * (int(bursts[-1][0] / WINDOW) + 1)
    for at, length in bursts:
        windows[int(at / WINDOW)] += length / WINDOW
    before = statistics.mean(windows[int(1 / WINDOW) : int(after / WINDOW)])
    first = int((after + lasting) / WINDOW)
    back = next(
        (
            (at - first) * WINDOW
            for at in range(first, len(windows) - SUSTAINED)
            if windows[at] >= BACK * before
            and statistics.mean(windows[at : at + SUSTAINED]) >= BACK * before
        ),
        None,
    )
    return {
        "case": "recovery",
        "connections": REFUSED_CONNECTIONS,
        "bytes_per_second_before": before,
        "seconds_until_back": back,
        "window_seconds": WINDOW,
        "windows_bytes_per_second": windows,
    }


def timeline(port: int, size: int) -> list[tuple[float, int]]:
    """Run `onecopy cat`; return how many bytes came out when, in seconds from the first request."""
    command = [str(ONECOPY), "cat", f"s3://bench/ok/{size}/object", "--memory", "256MiB"]
    command += ["--connections", str(REFUSED_CONNECTIONS), "--no-sign-request"]
    command += ["--endpoint-url", f"http://127.0.0.1:{port}"]
    bursts: list[tuple[float, int]] = []
    quiet = {**os.environ, "AWS_REGION": "us-east-1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=quiet) as process:
        os.sched_setaffinity(process.pid, {CLIENT_CORE})
        if process.stdout is None:
            raise RuntimeError("no pipe")
        began = None
        while piece := os.read(process.stdout.fileno(), MIB):
            now = time.monotonic()
            # The first range comes out whole: it took its first byte and its length.
            began = began or now - FIRST_BYTE_MS / 1000 - 8 * MIB / RATE
            bursts.append((now - began, len(piece)))
    if process.returncode or sum(length for _, length in bursts) != size:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return bursts


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Take the medians."""
    table = ["| connections | client | rate | of N x 50 MB/s |", "|---|---|---|---|"]
    reached, holds = [], True
    for count in COUNTS:
        here = [row for row in rows if row.get("connections") == count]
        carried = share_of([row for row in here if row["case"] == "floor"])
        table.append(line(count, "floor", carried))
        for range_bytes in RANGES:
            cases = [row for row in here if row["case"] == "reach"]
            share = share_of([row for row in cases if row["range_bytes"] == range_bytes])
            name = "default range" if range_bytes is None else f"{range_bytes // MIB} MiB"
            table.append(line(count, name, share))
            if range_bytes is None:
                reached.append(f"{share:.1%} of {carried:.1%}")
                holds &= share >= min(REACH_MIN, OF_FLOOR_MIN * carried)
    times = [row["seconds_until_back"] for row in rows if row["case"] == "recovery"]
    back = statistics.median(float("inf") if time is None else time for time in times)
    burst = f"a burst of 503 of {REFUSING[1]:.0f} s"
    table += ["", f"90 % of the rate before {burst}: {back:.2f} s after it."]
    figure = f"{', '.join(reached)} that the floor reaches; back after {back:.2f} s"
    return Verdict(figure, holds and back <= BACK_MAX, table)


def share_of(rows: list[dict[str, Any]]) -> float:
    """Return the median share of the full rate."""
    share: float = statistics.median(row["share"] for row in rows)
    return share


def line(count: int, client: str, share: float) -> str:
    """Return a line of the table."""
    return f"| {count} | {client} | {share * count * RATE / 1e6:.0f} MB/s | {share:.1%} |"
