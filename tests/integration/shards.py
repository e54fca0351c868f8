"""Shards of real photos, packed by programs that are not ours."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import webdataset
from PIL import Image

# Photos in the wheel of scikit-image, as JPEG and PNG, in colour and grey.
PHOTOS = [
    "astronaut.png",
    "camera.png",
    "chelsea.png",
    "coffee.png",
    "hubble_deep_field.jpg",
    "motorcycle_left.png",
    "retina.jpg",
    "rocket.jpg",
]
# How each photo is encoded, once for each of its samples; the first keeps a JPEG as it is.
ENCODINGS: list[dict[str, Any]] = [
    {"quality": 92},
    {"quality": 75, "subsampling": 0},
    {"quality": 85, "progressive": True},
]
SHARDS = 4
# Over 100 bytes, and not ASCII: such a path needs a prefix in ustar and an extra header elsewhere.
LONG_FOLDER = "a-folder-with-a-name-that-is-long-enough-to-matter" + "-ß" * 12
PACKERS = ["tar-ustar", "tar-gnu", "tar-pax", "webdataset"]


@dataclass(frozen=True)
class Sample:
    """One sample before it is packed: the values as Python objects, photos as bytes."""

    key: str
    fields: dict[str, Any]

    def encoded(self) -> dict[str, bytes]:
        """Return every field as it stands in a file."""
        npy = io.BytesIO()
        np.save(npy, self.fields["npy"])
        return {
            "jpg": self.fields["jpg"],
            "thumb.png": self.fields["thumb.png"],
            "json": json.dumps(self.fields["json"]).encode(),
            "cls": str(self.fields["cls"]).encode(),
            "txt": self.fields["txt"].encode(),
            "npy": npy.getvalue(),
        }


def photo_folder() -> Path:
    """Find the photos without importing scikit-image, which is installed without its needs."""
    spec = importlib.util.find_spec("skimage")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "data"


def jpeg(image: Image.Image, options: dict[str, Any]) -> bytes:
    """Encode a photo."""
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def samples() -> list[Sample]:
    """Make the samples, the same every time."""
    made = []
    for label, name in enumerate(PHOTOS):
        file = photo_folder() / name
        image = Image.open(file)
        image = image if image.mode == "L" else image.convert("RGB")
        small = io.BytesIO()
        image.resize((32, 32)).save(small, "PNG")
        for number, options in enumerate(ENCODINGS):
            keep = number == 0 and file.suffix == ".jpg"
            fields = {
                "jpg": file.read_bytes() if keep else jpeg(image, options),
                "thumb.png": small.getvalue(),
                "json": {"photo": name, "size": list(image.size), "ratio": 1 / 3, "ß": None},
                "cls": label,
                "txt": f"{file.stem}, encoded with {options}: naïve café, 写真",
                "npy": np.asarray(image)[:: number + 1],
            }
            folder = LONG_FOLDER if number == 1 else "train"
            made.append(Sample(f"{folder}/{file.stem}_{number}", fields))
    # Shuffled by a fixed step, so that every shard holds a bit of everything.
    step = 7
    return [made[i * step % len(made)] for i in range(len(made))]


def pack_by_tar(parts: list[list[Sample]], form: str, folder: Path) -> list[Path]:
    """Write the samples as files, and let GNU tar pack each part as a folder."""
    shards = []
    for number, part in enumerate(parts):
        source = folder / f"files-{number:04d}"
        for sample in part:
            for name, body in sample.encoded().items():
                file = source / f"{sample.key}.{name}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(body)
        shard = folder / f"photos-{number:04d}.tar"
        command = ["tar", "--sort=name", f"--format={form}", "-C", str(source), "-cf", str(shard)]
        subprocess.run([*command, "."], check=True)
        shards.append(shard)
    return shards


def pack_by_webdataset(parts: list[list[Sample]], folder: Path) -> list[Path]:
    """Let webdataset's TarWriter encode and pack each part."""
    shards = []
    for number, part in enumerate(parts):
        shard = folder / f"photos-{number:04d}.tar"
        with webdataset.TarWriter(str(shard)) as writer:
            for sample in part:
                writer.write({"__key__": sample.key, **sample.fields})
        shards.append(shard)
    return shards


def pack(packer: str, folder: Path) -> list[Path]:
    """Pack all samples into shards by one of PACKERS."""
    everything = samples()
    parts = [everything[number::SHARDS] for number in range(SHARDS)]
    if packer == "webdataset":
        return pack_by_webdataset(parts, folder)
    return pack_by_tar(parts, packer.removeprefix("tar-"), folder)
