"""Shards for tests, written with nothing but the standard library."""

import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path


def png(height: int, width: int, seed: int = 0) -> bytes:
    """Return a picture in RGB; ``pixels`` tells what is in it."""
    rows = b"".join(
        b"\0" + bytes(pixel for x in range(width) for pixel in pixel_at(seed, y, x))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def pixel_at(seed: int, y: int, x: int) -> tuple[int, int, int]:
    """Return red, green and blue of a picture of ``png``."""
    return (seed * 7 + y) % 256, (seed * 3 + x) % 256, (seed + y * x) % 256


def npy(values: Iterable[float], shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    """Return an array in the form of ``numpy.save``."""
    code = {"<f4": "f", "<i8": "q", "|u1": "B", "|O": "B"}[dtype]
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header = header.ljust(117) + "\n"
    body = b"".join(struct.pack("<" + code, value) for value in values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def sample(index: int, *, size: tuple[int, int] = (8, 6)) -> dict[str, bytes]:
    """Return the fields of the sample ``index``."""
    return {
        "png": png(*size, seed=index),
        "npy": npy([index, index + 0.5, -1.0], (3,)),
        "cls": str(index).encode(),
        "txt": f"text {index} ü".encode(),
        "json": json.dumps({"index": index, "list": [1, None]}).encode(),
        "bin": bytes([index % 256, 0, 255]),
    }


def write(path: Path, samples: Mapping[str, Mapping[str, bytes]]) -> str:
    """Write a shard and return its URL."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, fields in samples.items():
            for name, data in fields.items():
                member = tarfile.TarInfo(f"{key}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return f"file://{path}"


def numbered(path: Path, first: int, count: int) -> str:
    """Write a shard of samples with all kinds of fields and return its URL."""
    return write(path, {f"{index:06d}": sample(index) for index in range(first, first + count)})


def small(path: Path, first: int, count: int) -> str:
    """Write a shard of samples that have a ``cls`` only, and return its URL."""
    keys = range(first, first + count)
    return write(path, {f"{index:06d}": {"cls": str(index).encode()} for index in keys})
