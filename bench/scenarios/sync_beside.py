"""Folders and buckets made alike by onecopy, s5cmd and aws, on one core each, over plain HTTP.

Each case is a scenario of its own, so that each can be run alone. In each the clients take turns
with the same server; every turn begins with a fresh server and an empty target, which is checked
after it. All are charged for their whole process, from exec to exit, write nothing to
stdout, and wait for no disk (none of them syncs files to it unless told to).

- 100,000 files of 4 KiB, in folders of 1000, from a bucket into a folder of the disk, and back.
- 40 files of 256 MiB (10 GiB) from a bucket into a folder of the disk. They are 40 names of four
  files, so that the server reads them from memory and not from the disk that is written to.
- 8 files of 256 MiB into a bucket: the server keeps what is not complete in memory, so that 10 GiB
  are too many for it.
- 8 files of 256 MiB from a bucket into files, by `cp`, on the disk and in memory (tmpfs).

aws takes minutes for what takes the others seconds. So it gets 10,000 of the small files, which is
why files are compared by the second, and has its turn only once.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from measuring import (
    BUCKET,
    DATA,
    GB,
    KEY_ID,
    MIB,
    ONECOPY,
    REGION,
    RIVALS_PYTHON,
    SECRET,
    charged,
    make_objects,
    serving,
    warm,
)
from scenarios import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Command, Run

SMALL, SMALL_SIZE, PER_FOLDER = 100_000, 4096, 1000
SMALL_FOR_AWS = 10_000
LARGE_SIZE, INODES = 256 * MIB, 4
TIMEOUT = 1800.0
AWS_TURNS = 1
ACCOUNT = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
# The targets of uploads and downloads: beside the data, where `make bench` has room.
INTO = "sync-into"
MEMORY = Path("/dev/shm") / f"onecopy-bench-{os.getpid()}"  # noqa: S108 - it has to be there


def s5cmd() -> Path:
    """Return the program inside the Python package, past the script that starts it."""
    found = sorted((RIVALS_PYTHON.parent.parent / "lib").glob("python*/site-packages/s5cmd/bin"))
    return found[0] / "s5cmd"


def command(client: str, port: int, verb: str, source: str, target: str) -> Command:
    """Return what is typed for a copy by one of the clients; both sides end in a slash."""
    endpoint = f"http://127.0.0.1:{port}"
    if client == "onecopy":
        recursive = ["-r"] if verb == "cp" else []
        where = ["--endpoint-url", endpoint, "--quiet"]
        return [ONECOPY, verb, *recursive, *where, source, target]
    if client == "s5cmd":
        # It takes what is below a prefix by a pattern, and a folder by its name.
        below = f"{source}*" if source.startswith("s3:") else source
        return [s5cmd(), "--endpoint-url", endpoint, "--log", "error", verb, below, target]
    recursive = ["--recursive"] if verb == "cp" else []
    aws = RIVALS_PYTHON.parent / "aws"
    options = ["--endpoint-url", endpoint, "--quiet", *recursive]
    return [RIVALS_PYTHON, aws, "s3", verb, source, target, *options]


def make_small(count: int) -> str:
    """Make small files in folders of 1000 once; return the key prefix."""
    prefix = f"sync-small-{count}"
    for folder in range(-(-count // PER_FOLDER)):
        inside = min(PER_FOLDER, count - folder * PER_FOLDER)
        make_objects(Path(prefix) / f"{folder:04d}", inside, SMALL_SIZE)
    return prefix


def make_large(count: int) -> str:
    """Make large files once, many of them names of few; return the key prefix."""
    prefix = f"sync-large-{count}"
    keys = make_objects(Path("sync-large"), INODES, LARGE_SIZE)
    warm(keys)
    folder = DATA / BUCKET / prefix
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = folder / f"object-{number:04d}"
        if not name.exists():
            name.hardlink_to(DATA / BUCKET / keys[number % INODES])
    return prefix


def held(folder: Path) -> tuple[int, int]:
    """Return how many files are below a folder, and how many bytes are in them."""
    files = size = 0
    for above, _folders, names in os.walk(folder):
        files += len(names)
        size += sum((Path(above) / name).stat().st_size for name in names)
    return files, size


@dataclass(frozen=True)
class Case:
    """One case: what is copied, which way, and by whom."""

    TITLE: str
    LIMIT: str
    verb: str
    count: int
    rivals: tuple[str, ...]
    is_small: bool = False
    is_upload: bool = False
    place: str = "disk"
    # onecopy's CPU and time are to be no more than so many times those of the best other.
    cpu_max: float = 1.0
    wall_max: float = 1.0

    def measure(self, runs: int) -> Iterator[dict[str, Any]]:
        """Run the clients in turns."""
        self.prefix("onecopy")
        clients = ("onecopy", *self.rivals)
        root = (MEMORY if self.place == "memory" else DATA) / INTO
        shutil.rmtree(root, ignore_errors=True)
        try:
            for turn in range(runs):
                # In turns with who begins: memory that one has freed is had cheaply by the next.
                first = turn % len(clients)
                for client in clients[first:] + clients[:first]:
                    if client != "aws" or turn < AWS_TURNS:
                        done = self.turn(client, root / f"{client}-{turn}")
                        yield {"client": client, **done}
        finally:
            shutil.rmtree(root, ignore_errors=True)
            shutil.rmtree(MEMORY, ignore_errors=True)

    def prefix(self, client: str) -> str:
        """Make what a client copies; return its prefix in the bucket."""
        if self.is_small:
            return make_small(SMALL_FOR_AWS if client == "aws" else self.count)
        return make_large(self.count)

    def turn(self, client: str, into: Path) -> dict[str, Any]:
        """Copy once, and look at what came of it."""
        prefix = self.prefix(client)
        source = DATA / BUCKET / prefix
        into.mkdir(parents=True)
        down = (f"s3://{BUCKET}/{prefix}/", f"{into}/")
        # The folder above a target is the bucket of that name.
        up = (f"{source}/", f"s3://{INTO}/{into.name}/")
        way = up if self.is_upload else down
        with serving(DATA) as port:
            done: Run = charged(command(client, port, self.verb, *way), ACCOUNT, timeout=TIMEOUT)
        files, size = held(into)
        # Many files stay until the end: for half a minute after it has deleted them ext4 searches
        # for each new file past all of theirs, which costs more than copying.
        if not self.is_small:
            shutil.rmtree(into)
        if (files, size) != held(source):
            raise RuntimeError(f"{client} made {files} files of {size} bytes in all")
        return {
            "files": files,
            "bytes": size,
            "seconds": done.wall,
            "cpu_seconds": done.cpu,
            "peak_rss_bytes": done.peak_rss_bytes,
        }

    def judge(self, rows: list[dict[str, Any]]) -> Verdict:
        """Put the medians side by side."""
        table = [
            "| client | turns | files | CPU s/GB | CPU ms/file | GB/s | files/s | peak MB |",
            "|---|---|---|---|---|---|---|---|",
        ]
        cost: dict[str, tuple[float, float]] = {}
        for client in ("onecopy", *self.rivals):
            mine = [r for r in rows if r["client"] == client]
            files, size = mine[0]["files"], mine[0]["bytes"]
            spent = median(r["cpu_seconds"] for r in mine)
            took = median(r["seconds"] for r in mine)
            peak = median(r["peak_rss_bytes"] for r in mine) / 1e6
            cost[client] = (spent / files, took / files)
            table.append(
                f"| {client} | {len(mine)} | {files} | {spent / size * GB:.2f} "
                f"| {spent / files * 1e3:.3f} | {size / took / GB:.3f} "
                f"| {files / took:.0f} | {peak:.0f} |"
            )
        ours = cost.pop("onecopy")
        cpu = ours[0] / min(one[0] for one in cost.values())
        wall = ours[1] / min(one[1] for one in cost.values())
        figure = f"{cpu:.2f} x the CPU and {wall:.2f} x the time of the best other"
        return Verdict(figure, cpu <= self.cpu_max and wall <= self.wall_max, table)


BOTH = "faster than s5cmd and aws in the same run, and less CPU than both"
HALF = "at most half of the CPU of s5cmd"
ALL = ("s5cmd", "aws")
CP: dict[str, Any] = {
    "LIMIT": HALF,
    "verb": "cp",
    "count": 8,
    "rivals": ("s5cmd",),
    "cpu_max": 0.5,
    "wall_max": float("inf"),
}
SYNC: dict[str, Any] = {"LIMIT": BOTH, "verb": "sync", "rivals": ALL}
CASES = {
    "sync_small_down": Case(
        "sync of 100,000 small files into a folder", is_small=True, count=SMALL, **SYNC
    ),
    "sync_small_up": Case(
        "sync of 100,000 small files into a bucket",
        is_small=True,
        count=SMALL,
        is_upload=True,
        **SYNC,
    ),
    "sync_large_down": Case("sync of 10 GiB in large files into a folder", count=40, **SYNC),
    "sync_large_up": Case(
        "sync of 2 GiB in large files into a bucket", count=8, is_upload=True, **SYNC
    ),
    "cp_into_files": Case("cp of 8 objects of 256 MiB into files of a disk", **CP),
    # Writing there costs the kernel more than half of what s5cmd takes in all.
    "cp_into_tmpfs": Case(
        "cp of 8 objects of 256 MiB into files in memory",
        place="memory",
        **{**CP, "LIMIT": "less CPU than s5cmd", "cpu_max": 1.0},
    ),
}
