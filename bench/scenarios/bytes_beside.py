"""Bytes of objects into memory by onecopy and by other clients, on one core each, over plain HTTP.

Large objects (8 of 256 MiB) and small ones (2000 of 100 KB) from the same server, in turns. Every
client signs its requests but the floor, which is given them ready-made. The other clients are
charged from their first request to their last byte; onecopy and the floor for their whole process,
from exec to exit. onecopy holds the bytes against the checksums that the server gives (CRC64NVME),
as others may; the floor does not, so it is compared with onecopy without that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import (
    BUCKET,
    DATA,
    GB,
    MIB,
    RANGE_BYTES,
    RIVALS_PYTHON,
    ROOT,
    counter_environment,
    floor,
    make_objects,
    need_verified,
    onecopy_bench,
    run,
    serving,
    sum_up,
    sums,
    warm,
)
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command

TITLE = "bytes into memory, beside other clients"
LIMIT = (
    "large objects: 1.10 x the CPU of the floor without checksums, and 0.55 x that of the best "
    "other, or less than it where the floor itself takes more than 0.5 x; more small objects a "
    "second than every other; 0.01 copies in user space per byte, at most"
)
RATIO_MAX, FLOOR_MAX = 0.55, 1.10
FLOOR_OF_BEST = 0.5  # nobody is to need less than the floor
COPIES_MAX = 0.01
SETS = {"large": (8, 256 * MIB), "small": (2000, 100_000)}
RIVALS = ("boto3", "obstore", "s3torchconnector", "s3fs", "runai")
CLIENTS = ("floor", "onecopy, unverified", "onecopy", *RIVALS)
UNSIGNED = "onecopy, unsigned"
CONNECTIONS, MEMORY = 8, 256 * MIB


def fetch(
    client: str, port: int, folder: str, keys: list[str], env: dict[str, str] | None = None
) -> dict[str, Any]:
    """Fetch all of a set by one client, once."""
    size = SETS[folder][1]
    if client == "floor":
        range_bytes = RANGE_BYTES if size > RANGE_BYTES else None
        done = floor(port, keys, CONNECTIONS, MEMORY, range_bytes=range_bytes)
        return {"bytes": done.answer["bytes"], "seconds": done.wall, "cpu_seconds": done.cpu}
    if client.startswith("onecopy"):
        options = ["--connections", str(CONNECTIONS), "--memory", str(MEMORY)]
        if client == "onecopy, unverified":
            options += ["--no-verify-checksum"]
        if client == UNSIGNED:
            options += ["--no-sign-request"]
        done = onecopy_bench(port, [f"beside-{folder}/**"], "buffer", *options, env=env)
        if client == "onecopy":
            need_verified(done, len(keys))
        read = done.answer["payload_bytes"]
        return {"bytes": read, "seconds": done.wall, "cpu_seconds": done.cpu}
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as listed:
        listed.write("\n".join(keys))
        listed.flush()
        command: Command = [
            RIVALS_PYTHON,
            ROOT / "bench" / "rivals" / "bytes_by.py",
            *(client, str(port), BUCKET, str(size), listed.name),
        ]
        return run(command, env).answer


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Run the clients in turns."""
    for folder, (count, size) in SETS.items():
        keys = make_objects(Path(f"beside-{folder}"), count, size)
        warm(keys)
        sum_up(keys)
        for _ in range(runs):
            # A fresh server each time: none gains from what the last one left there.
            with serving(DATA, has_sums=True) as port:
                for client in (*CLIENTS, UNSIGNED) if folder == "small" else CLIENTS:
                    row = fetch(client, port, folder, keys)
                    if row["bytes"] != count * size:
                        raise RuntimeError(f"{client} fetched {row['bytes']} bytes of {folder}")
                    yield {"set": folder, "client": client, **row}
    yield from copies()


def copies() -> Iterator[dict[str, Any]]:
    """Count what each client copies in user space, once: it is the same every time."""
    count, size = SETS["large"]
    keys = make_objects(Path("beside-large"), count, size)
    for client in ("onecopy", *RIVALS):
        with (
            serving(DATA, has_sums=True) as port,
            tempfile.NamedTemporaryFile("r", suffix=".jsonl") as lines,
        ):
            row = fetch(client, port, "large", keys, counter_environment(lines.name))
            copied = sums(lines.read())["copied"] / row["bytes"]
        yield {"set": "copies", "client": client, "copies_per_byte": copied}


def judge(rows: list[dict[str, Any]]) -> Verdict:
    """Compare turn by turn, and put the medians side by side."""
    table = [
        "| objects | client | copies per byte | CPU s/GB | GB/s | objects/s |",
        "|---|---|---|---|---|---|",
    ]
    copied = {row["client"]: row["copies_per_byte"] for row in rows if row["set"] == "copies"}
    cpu: dict[tuple[str, str], list[float]] = {}
    rate: dict[tuple[str, str], float] = {}
    for folder, (count, size) in SETS.items():
        for client in (*CLIENTS, UNSIGNED):
            mine = [r for r in rows if (r["set"], r["client"]) == (folder, client)]
            if not mine:
                continue
            cpu[folder, client] = [r["cpu_seconds"] / r["bytes"] * GB for r in mine]
            rate[folder, client] = median(count / r["seconds"] for r in mine)
            is_counted = folder == "large" and client in copied
            table.append(
                f"| {count} x {size} bytes | {client} "
                f"| {f'{copied[client]:.2f}' if is_counted else '-'} "
                f"| {median(cpu[folder, client]):.3f} "
                f"| {rate[folder, client] * size / GB:.2f} | {rate[folder, client]:.0f} |"
            )
    turns = list(zip(*(cpu["large", client] for client in CLIENTS), strict=True))
    to_floor = median(unverified / bare for bare, unverified, *_ in turns)
    to_best = median(ours / min(others) for _floor, _unverified, ours, *others in turns)
    floor_to_best = median(bare / min(others) for bare, _unverified, _ours, *others in turns)
    lead = rate["small", "onecopy"] / max(rate["small", client] for client in RIVALS)
    pairs = zip(cpu["small", UNSIGNED], cpu["small", "onecopy"], strict=True)
    # Not signatures alone: heads are longer, and the server takes longer to check them.
    signing = median(1 - without / signed for without, signed in pairs)
    figure = (
        f"large: {to_floor:.2f} x the floor, {to_best:.2f} x the best other, of which the floor "
        f"takes {floor_to_best:.2f}; {copied['onecopy']:.3f} copies per byte; small: {lead:.2f} x "
        f"the objects/s of the fastest other, {signing:.1%} of the CPU for being signed"
    )
    is_cheap = to_best <= RATIO_MAX or (floor_to_best > FLOOR_OF_BEST and to_best < 1)
    holds = to_floor <= FLOOR_MAX and is_cheap and lead > 1
    return Verdict(figure, holds and copied["onecopy"] <= COPIES_MAX, table)
