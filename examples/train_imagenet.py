"""Train a picture classifier on tar shards, on any number of ranks, and go on where it was left.

    onecopy index 's3://bucket/train-{00000..01023}.tar' --out s3://bucket/index/
    torchrun --nproc-per-node 8 examples/train_imagenet.py 's3://bucket/train-{00000..01023}.tar' \
        --index s3://bucket/index/index.json --global-batch 1024 --checkpoint checkpoint.pt

Started again, with as many ranks or with others, it goes on behind the last checkpoint with the
very global batches that the uninterrupted run would have seen. Samples have the fields ``jpg`` and
``cls``. Runs on GPUs where torch sees any, and on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import onecopy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def arguments() -> argparse.Namespace:
    """Read what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("urls", nargs="+", help="tar shards")
    parser.add_argument("--index", required=True, help="what onecopy index has written")
    parser.add_argument("--endpoint-url", help="an S3 server other than AWS")
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="save and end early")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--global-batch", type=int, default=256)
    parser.add_argument("--shuffle", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=224, metavar="PIXELS")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--log-keys", type=Path, help="write the samples of each step there")
    return parser.parse_args()


def make_loader(asked: argparse.Namespace, ranks: int) -> onecopy.Loader:
    """Name the data, and the order in which they come. Ranks are looked up when it iterates."""
    return (
        onecopy.open(asked.urls, index=asked.index, endpoint_url=asked.endpoint_url, lanes=64)
        .shuffle(asked.shuffle, seed=asked.seed)
        .decode("rgb", size=asked.size)
        .to_tuple("__key__", "jpg", "cls")
        .batch(asked.global_batch // ranks, tail="pad")
    )


def make_model(classes: int) -> nn.Module:
    """Make a small convolutional network: put yours here."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=4, padding=3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


class Trainer:
    """A model in training, and where it stands."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.rank, ranks = dist.get_rank(), dist.get_world_size()
        local = int(os.environ.get("LOCAL_RANK", "0"))
        has_gpu = torch.cuda.is_available()
        self.device = torch.device(f"cuda:{local}" if has_gpu else "cpu")
        torch.manual_seed(asked.seed)
        self.model = DistributedDataParallel(make_model(asked.classes).to(self.device))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.loader = make_loader(asked, ranks)
        self.step = 0
        if asked.checkpoint.exists():
            self.restore()

    def restore(self) -> None:
        """Go on behind the checkpoint."""
        saved = torch.load(self.asked.checkpoint, map_location=self.device, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        self.step = saved["step"]

    def save(self) -> None:
        """Write a checkpoint: whole, or not at all. The loader's state is the same on all ranks."""
        if self.rank != 0:
            return
        saved = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "step": self.step,
        }
        draft = self.asked.checkpoint.with_suffix(".draft")
        torch.save(saved, draft)
        draft.replace(self.asked.checkpoint)

    def train(self) -> None:
        """Train to the last epoch, or as far as asked for."""
        for epoch in range(self.loader.state_dict()["epoch"], self.asked.epochs):
            for keys, images, labels in self.loader:
                loss = self.learn(images, labels)
                self.step += 1
                self.log(epoch, keys, loss)
                is_stopping = self.step == self.asked.stop_after
                if is_stopping or self.step % self.asked.save_every == 0:
                    self.save()
                if is_stopping:
                    return
            self.save()

    def learn(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """Take one step."""
        images = images.to(self.device, non_blocking=True).float().div_(255)
        output = self.model(images)
        loss = nn.functional.cross_entropy(output, labels.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()

    def log(self, epoch: int, keys: list[str], loss: float) -> None:
        """Say how it goes."""
        if self.rank == 0:
            print(f"epoch {epoch} step {self.step} loss {loss:.3f}", flush=True)
        if self.asked.log_keys is None:
            return
        line: dict[str, Any] = {"epoch": epoch, "step": self.step, "keys": keys}
        with self.asked.log_keys.with_suffix(f".{self.rank}").open("a") as lines:
            print(json.dumps(line), file=lines)


def main() -> None:
    """Join the other ranks, and train."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        trainer = Trainer(arguments())
        if trainer.rank == 0:
            print(trainer.loader.plan(), flush=True)
        trainer.train()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
