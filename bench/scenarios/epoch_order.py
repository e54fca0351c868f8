"""What order costs in a long epoch: plain, shuffled, with an index and lanes, and with states.

128 shards of 100 MB (64 files; samples of 100 KB) into batches of 64 by one process on one core:
over a link, the fault server, which gives 25 MB/s to each of 8 connections and the first byte of
every answer after 30 ms; and, where that core is what is waited for, over loopback from the S3
server and from files in the page cache. As bytes, which Python copies out of the batch, and as
arrays, where nobody does that. All ways in turns, each turn beginning with another; the ratio to
the plain stream is taken in each turn, and the median of the ratios is given. Windows take 1 GB,
which fits into a memory of 4 GiB; into 1 GiB it does not (`little memory`), so samples are copied
out of the way.

Claimed is what a link brings: a shuffled sample is read out of memory and no longer out of the
core's cache, which a core that has nothing to wait for does feel.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from counted_shards import Shards, order
from measuring import BUCKET, DATA, GB, faulty, serving, warm
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

TITLE = "throughput of an ordered epoch"
LIMIT = (
    "over a link of 200 MB/s with shuffle, index, 64 lanes and a state behind each batch, "
    "at least 0.97 x the samples/s of the plain stream"
)
RATIO_MIN = 0.97
SHARDS = Shards("epoch", 128, 1000, 100_000)
SHUFFLE, LANES, MEMORY, LITTLE_MEMORY = 10_000, 64, "4GiB", "1GiB"
WAYS = ("plain", "shuffled", "lanes and index", "with states", "little memory")
JUDGED, JUDGED_STORE = "with states", "link"
SETS = (
    ("s3", "bytes"),
    ("files", "bytes"),
    ("s3", "arrays"),
    ("files", "arrays"),
    ("link", "arrays"),
)
LINK_WAYS = ("plain", "shuffled", "with states")
CONNECTIONS, RATE, FIRST_BYTE_MS = 8, 25_000_000, 30
LINK_TURNS = 3  # some three minutes each


def asked(store: str, kind: str, way: str, port: int) -> dict[str, Any]:
    """Return what a process is asked for."""
    memory = LITTLE_MEMORY if way == "little memory" else MEMORY
    opened: dict[str, Any] = {"memory": memory, "decode_threads": 1}
    where = str(SHARDS.place)
    if store != "files":
        endpoint = f"http://127.0.0.1:{port}"
        opened |= {"endpoint_url": endpoint, "region": "us-east-1", "no_sign_request": True}
        where = f"s3://{BUCKET}/{SHARDS.folder}"
    if store == "link":
        opened["connections"] = CONNECTIONS
        where = f"s3://{BUCKET}"
    if way in WAYS[2:]:
        opened |= {"index": f"{where}/index/index.json", "lanes": LANES}
    return {
        "urls": f"{where}/shards/",
        "opened": opened,
        "shuffle": 0 if way == "plain" else SHUFFLE,
        "fields": [SHARDS.field],
        "is_raw": kind == "bytes",
        "is_stating": way == "with states",
    }


def server(store: str) -> AbstractContextManager[int]:
    """Start what the shards come from."""
    if store != "link":
        return serving(DATA)
    timing = ["--bytes-per-second", str(RATE), "--first-byte-ms", str(FIRST_BYTE_MS)]
    return faulty(*timing, "--root", str(SHARDS.place))


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the ways in turns."""
    SHARDS.make()
    for turn in range(max(runs, LINK_TURNS)):
        for store, kind in SETS:
            if turn >= (LINK_TURNS if store == "link" else runs):
                continue
            warm(SHARDS.keys)
            ways = LINK_WAYS if store == "link" else WAYS
            first = turn % len(ways)
            with server(store) as port:
                for way in ways[first:] + ways[:first]:
                    done = order("epoch", asked(store, kind, way, port))
                    if done.answer["samples"] != SHARDS.shards * SHARDS.samples:
                        raise RuntimeError(f"{way}: {done.answer['samples']} samples came")
                    row = {"store": store, "kind": kind, "way": way, "turn": turn}
                    yield {**row, "peak_rss_bytes": done.peak_rss_bytes, **done.answer}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn."""
    table = [
        "| from | way | samples/s | of plain | CPU s/GB | of plain | copied again | peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    size = SHARDS.samples * SHARDS.shards * SHARDS.sample_bytes
    judged = 0.0
    for store, kind in SETS:
        mine = [r for r in rows if (r["store"], r["kind"]) == (store, kind)]
        plain = {r["turn"]: r for r in mine if r["way"] == "plain"}
        for way in LINK_WAYS if store == "link" else WAYS:
            turns = [r for r in mine if r["way"] == way]
            ratio = median(plain[r["turn"]]["seconds"] / r["seconds"] for r in turns)
            cpu = median(r["cpu_seconds"] / plain[r["turn"]]["cpu_seconds"] for r in turns)
            again = max(r["hops"].get("straddle", 0) + r["hops"].get("hold", 0) for r in turns)
            if (way, store) == (JUDGED, JUDGED_STORE):
                judged = ratio
            table.append(
                f"| {kind}, {store} | {way} "
                f"| {median(r['samples'] / r['seconds'] for r in turns):.0f} | {ratio:.3f} "
                f"| {median(r['cpu_seconds'] for r in turns) / size * GB:.3f} | {cpu:.2f} "
                f"| {again / size:.1%} | {max(r['peak_rss_bytes'] for r in turns) / 1e6:.0f} |"
            )
    return Verdict(f"{judged:.3f} x", judged >= RATIO_MIN, table)
