"""CPU of bytes into memory over HTTPS, against the bare-receive floor and the opening of records.

What no client can do without over TLS is to receive the bytes and to decrypt them. The first is
the floor of `buffer_cpu`, over plain HTTP from the same server; the second is `open_bench`, which
opens as many bytes of AES-128-GCM records that lie in the cache, by aws-lc and by ring, of which
the cheaper counts. Each is measured in each turn, and onecopy is held against their sum. Of the
floor and of onecopy the whole process is charged, of the opening only its loop. The claim is about
a run of onecopy without checksums, as neither of the two computes any; what it takes with them
(CRC64NVME) is told beside it.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import (
    DATA,
    GB,
    RANGE_BYTES,
    floor,
    make_objects,
    need_verified,
    onecopy_bench,
    opening,
    serving,
    sum_up,
    warm,
)
from scenarios import Verdict
from scenarios.buffer_cpu import CONNECTIONS, FOLDER, MEMORY, OBJECT_BYTES, OBJECTS, row

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "bytes into memory over HTTPS"
LIMIT = (
    "client CPU at most 1.15 x (the bare-receive floor + opening the same bytes from the cache), "
    "without checksums"
)
RATIO_MAX = 1.15


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the clients in turns."""
    keys = make_objects(FOLDER, OBJECTS, OBJECT_BYTES)
    warm(keys)
    sum_up(keys)
    options = ["--connections", str(CONNECTIONS), "--memory", "256MiB"]
    ca_bundle = DATA / "tls" / "ca.pem"
    for _ in range(runs):
        # A fresh server each time: none gains from what the last one left there.
        with serving(DATA) as port:
            for way, size in (("whole", None), ("ranges", RANGE_BYTES)):
                done = floor(port, keys, CONNECTIONS, MEMORY, range_bytes=size)
                yield row(f"floor, {way}", done.answer["bytes"], done, done.cpu)
        done = opening(OBJECTS * OBJECT_BYTES, MEMORY)
        yield row("opening", done.answer["bytes"], done, done.answer["cpu"])
        with serving(DATA, ca_bundle=ca_bundle, has_sums=True) as port:
            done = onecopy_bench(port, keys, "buffer", *options, ca_bundle=ca_bundle)
            need_verified(done, OBJECTS)
            yield row("onecopy", done.answer["payload_bytes"], done, done.cpu)
            options_bare = [*options, "--no-verify-checksum"]
            done = onecopy_bench(port, keys, "buffer", *options_bare, ca_bundle=ca_bundle)
            yield row("onecopy, unverified", done.answer["payload_bytes"], done, done.cpu)


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn."""
    clients = ("floor, whole", "floor, ranges", "opening", "onecopy", "onecopy, unverified")
    cpu = {
        client: [r["cpu"] / r["bytes"] * GB for r in rows if r["client"] == client]
        for client in clients
    }
    turns = list(zip(*cpu.values(), strict=True))
    ratio = median(ours / (min(whole, ranges) + opened) for whole, ranges, opened, ours, _ in turns)
    bare = median(ours / (min(whole, ranges) + opened) for whole, ranges, opened, _, ours in turns)
    answers = [r["answer"] for r in rows if r["client"] == "opening"]
    ciphers = {
        name: median(answer[name] / answer["bytes"] * GB for answer in answers)
        for name in ("aws_lc", "ring")
    }
    copies = [r["answer"]["copies_per_byte"]["user"] for r in rows if r["client"] == "onecopy"]
    table = ["| client | CPU s/GB, median | least | most |", "|---|---|---|---|"]
    table += [
        f"| {client} | {median(every):.3f} | {min(every):.3f} | {max(every):.3f} |"
        for client, every in cpu.items()
    ]
    by_aws_lc, by_ring = ciphers["aws_lc"], ciphers["ring"]
    table += ["", f"Opening took {by_aws_lc:.3f} CPU s/GB by aws-lc and {by_ring:.3f} by ring."]
    table += ["", f"User-space copies per payload byte, by the ledger: {max(copies):.4f} at most."]
    figure = f"{bare:.2f} x (floor + opening), and {ratio:.2f} x with checksums"
    return Verdict(figure, bare <= RATIO_MAX, table)
