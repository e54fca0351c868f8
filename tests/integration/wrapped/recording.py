"""What the training scripts beside this one share: the data, and a record of what each step saw."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import onecopy
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--index", required=True)
    parser.add_argument("--endpoint-url")
    parser.add_argument("--tail", default="pad")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--way", help="one of several ways to use the wrapper")
    parser.add_argument("--folder", type=Path, required=True, help="of records and checkpoints")
    parser.add_argument("--save-after", type=int, help="steps")
    parser.add_argument("--resume", type=Path, help="a checkpoint")
    return parser.parse_args(given)


def make_loader(asked: argparse.Namespace, **options: int) -> onecopy.Loader:
    """Name the data: each sample is its number, 8 of them a batch of a rank."""
    return (
        onecopy.open(asked.urls, index=asked.index, endpoint_url=asked.endpoint_url, **options)
        .shuffle(200, seed=3)
        .decode()
        .to_tuple("cls")
        .batch(8, tail=asked.tail)
    )


def make_model() -> torch.nn.Module:
    """Make what is trained: how is of no interest here, only that ranks wait for each other."""
    torch.manual_seed(0)
    return torch.nn.Linear(1, 1)


def loss_of(model: torch.nn.Module, labels: torch.Tensor) -> torch.Tensor:
    """Have the model see a batch."""
    output: torch.Tensor = model(labels.float()[:, None] / 100)
    return output.square().mean()


def record(asked: argparse.Namespace, rank: int, epoch: int, labels: torch.Tensor) -> None:
    """Note what this rank has seen in a step."""
    asked.folder.mkdir(exist_ok=True)
    with (asked.folder / f"rank-{rank}").open("a") as lines:
        print(json.dumps({"epoch": epoch, "labels": labels.tolist()}), file=lines)
