"""Batches of 64 by the webdataset package over curl: `by_webdataset.py npy|jpg URL...`."""

from __future__ import annotations

import sys
from typing import Any

import meter
import numpy as np
import torch
import webdataset as wds  # type: ignore[import-untyped]
from PIL import Image


def picture(image: Image.Image) -> np.ndarray[Any, Any]:
    """Bring a picture to the size that all are asked for."""
    return np.asarray(image.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR))


kind, *urls = sys.argv[1:]
pipes = [f"pipe:curl -s {url}" for url in urls]
dataset = wds.WebDataset(pipes, shardshuffle=False, empty_check=False)
if kind == "jpg":
    dataset = dataset.decode("pil").to_tuple("jpg", "cls").map_tuple(picture, int)
else:
    dataset = dataset.decode().to_tuple("npy", "cls").map_tuple(lambda array: array, int)
batches = torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=0)
meter.run(batches)
