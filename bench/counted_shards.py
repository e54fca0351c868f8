"""Shards whose samples are counted, made quickly; their index is written along with them."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from measuring import BUCKET, DATA, ROOT, run

if TYPE_CHECKING:
    from pathlib import Path

    from measuring import Run

BLOCK = 512
END = 2 * BLOCK  # the end mark of an archive
RECORD = 10_240  # an archive is a whole number of these
DISTINCT = 64  # files at most, by as many names as there are shards: memory holds no more of 100 MB


def padded(size: int) -> int:
    """Return what so many bytes of content take up in an archive."""
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True)
class Shards:
    """So many shards, with so many samples of one field each.

    They are in `shards/` below a folder of the bucket, and their index in `index/`, so that a
    listing of shards gives nothing else.
    """

    folder: str
    shards: int
    samples: int  # of each shard
    sample_bytes: int
    field: str = "npy"
    """An array of bytes, or anything else: bytes of no form."""
    is_sparse: bool = False
    """Headers only: one file by many names, whose contents were never written."""

    @property
    def place(self) -> Path:
        """Return the folder of all of it."""
        return DATA / BUCKET / self.folder

    @property
    def keys(self) -> list[str]:
        """Return the keys in the bucket."""
        return [f"{self.folder}/shards/shard-{number:05d}.tar" for number in range(self.shards)]

    @property
    def stride(self) -> int:
        """Return what a sample takes up in its shard."""
        return BLOCK + padded(self.sample_bytes)

    @property
    def shard_bytes(self) -> int:
        """Return the length of a shard."""
        return -(-(self.samples * self.stride + END) // RECORD) * RECORD

    @property
    def index(self) -> Path:
        """Return where the index is."""
        return self.place / "index" / "index.json"

    def make(self) -> Shards:
        """Make them once."""
        done = self.place / ".made"
        made = json.dumps([self.samples, self.sample_bytes, self.field, self.is_sparse])
        if done.exists() and done.read_text() == f"{self.shards} {made}":
            return self
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "shards").mkdir(parents=True)
        files = [DATA / BUCKET / key for key in self.keys]
        self._write(files[0])
        for at, file in enumerate(files[1:], 1):
            if self.is_sparse:
                file.hardlink_to(files[0])
            elif at >= DISTINCT:
                file.hardlink_to(files[at % DISTINCT])
            else:
                # Files of their own: lanes that read one file by many names would share the cache.
                shutil.copyfile(files[0], file)
        self.write_index()
        done.write_text(f"{self.shards} {made}")
        return self

    def write_index(self, samples: int | None = None) -> Path:
        """Write what `onecopy index` would write, or as though each shard held so many samples."""
        count = self.samples if samples is None else samples
        # All shards are alike, and so are their offsets.
        offsets = f"all-{count}.idx"
        lines = [f"v1.2 {count}"]
        for number in range(count):
            at = number * self.stride + BLOCK
            lines.append(f"{self.field} {at} {self.sample_bytes} {number:08d}.{self.field}")
        index = self.index.with_name("index.json" if samples is None else f"index-{count}.json")
        index.parent.mkdir(parents=True, exist_ok=True)
        index.with_name(offsets).write_text("\n".join(lines) + "\n")
        entries = [
            {
                "url": key.rpartition("/")[2],
                "nsamples": count,
                "filesize": self.shard_bytes,
                "idx": offsets,
            }
            for key in self.keys
        ]
        head = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "key_rule": "first-dot"}
        index.write_text(json.dumps({**head, "shardlist": entries}))
        return index

    def _write(self, file: Path) -> None:
        source = random.Random(0)  # noqa: S311 - only to be of no pattern
        with file.open("wb") as out:
            for number in range(self.samples):
                member = tarfile.TarInfo(f"{number:08d}.{self.field}")
                member.size = self.sample_bytes
                out.seek(number * self.stride)
                out.write(member.tobuf(tarfile.USTAR_FORMAT))
                if not self.is_sparse:
                    out.write(self._body(source))
            out.truncate(self.shard_bytes)

    def _body(self, source: random.Random) -> bytes:
        if self.field != "npy":
            return source.randbytes(self.sample_bytes)
        inner = self.sample_bytes - 128
        shape = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({inner},), }}"
        head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
        return head + shape.ljust(117).encode() + b"\n" + source.randbytes(inner)


def order(what: str, asked: dict[str, Any]) -> Run:
    """Ask a question of `ordering.py`, in a process of its own."""
    return run([sys.executable, ROOT / "bench" / "ordering.py", what, json.dumps(asked)])
