"""Batches of 64 by boto3, tarfile and Pillow or numpy: `by_boto3.py npy|jpg URL...`."""

from __future__ import annotations

import io
import sys
import tarfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]
import botocore  # type: ignore[import-untyped]
import meter
import numpy as np
import torch
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

Sample = tuple[Any, int]


def decoded(kind: str, body: bytes) -> np.ndarray[Any, Any]:
    """Make an array of a picture or of a saved array."""
    if kind == "npy":
        array: np.ndarray[Any, Any] = np.load(io.BytesIO(body))
        return array
    image = Image.open(io.BytesIO(body)).convert("RGB")
    return np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR))


def samples(kind: str, urls: list[str]) -> Iterator[Sample]:
    """Read shard after shard, each as one object."""
    host = urlsplit(urls[0])
    client = boto3.client(
        "s3",
        endpoint_url=f"{host.scheme}://{host.netloc}",
        region_name="us-east-1",
        config=botocore.config.Config(
            signature_version=botocore.UNSIGNED, s3={"addressing_style": "path"}
        ),
    )
    for url in urls:
        bucket, _, key = urlsplit(url).path.lstrip("/").partition("/")
        body = client.get_object(Bucket=bucket, Key=key)["Body"]
        fields: dict[str, bytes] = {}
        with tarfile.open(fileobj=body, mode="r|") as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is None:
                    continue
                fields[member.name.partition(".")[2]] = file.read()
                if len(fields) == 2:
                    yield decoded(kind, fields[kind]), int(fields["cls"])
                    fields = {}


class Shards(torch.utils.data.IterableDataset[Sample]):
    """The samples, as a DataLoader wants them."""

    def __init__(self, kind: str, urls: list[str]) -> None:
        self.kind, self.urls = kind, urls

    def __iter__(self) -> Iterator[Sample]:
        """Start over."""
        return samples(self.kind, self.urls)


dataset = Shards(sys.argv[1], sys.argv[2:])
meter.run(torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=0))
