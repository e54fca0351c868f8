"""Train with Ray Train, and put the place in the data into its checkpoints."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import ray
from ray import train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from recording import arguments, loss_of, make_loader, make_model, record

if TYPE_CHECKING:
    import argparse

    import onecopy

LOST_STEPS = 2
"""The workers die so many steps behind the checkpoint."""


def train_worker(asked: argparse.Namespace) -> None:
    """Train on one rank: Ray has told torch.distributed which. Die once, and go on."""
    rank = train.get_context().get_world_rank()
    model = prepare_model(make_model())
    loader = make_loader(asked)
    checkpoint = train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            loader.load_state_dict(json.loads((Path(folder) / "loader.json").read_text()))
        asked.folder /= "rest"
    step = 0
    for epoch in range(loader.state_dict()["epoch"], asked.epochs):
        for (labels,) in loader:
            record(asked, rank, epoch, labels)
            loss_of(model, labels).backward()
            step += 1
            if checkpoint:
                continue
            if step == asked.save_after:
                save(loader, rank)
            if step == asked.save_after + LOST_STEPS:
                raise RuntimeError("the first workers die here")


def save(loader: onecopy.Loader, rank: int) -> None:
    """Hand Ray a checkpoint: the state is the same on all ranks, so one of them does."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "loader.json").write_text(json.dumps(loader.state_dict()))
        train.report({}, checkpoint=Checkpoint.from_directory(folder) if rank == 0 else None)


def main() -> None:
    """Train on two workers of this machine, which Ray starts anew when they die."""
    asked = arguments()
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
    trainer = TorchTrainer(
        train_worker,
        train_loop_config=asked,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            storage_path=str(asked.folder / "ray"),
            failure_config=FailureConfig(max_failures=1),
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
