"""Train with Accelerate: the loader stays out of ``prepare``, and its place is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onecopy
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from recording import arguments, loss_of, make_loader, make_model, record
from torch.utils.data import DataLoader

if TYPE_CHECKING:
    import argparse

# The ways in which Accelerate divides an iterable dataset: one process reads, or all read all.
DISPATCHES = (True, False)


def refusals(asked: argparse.Namespace) -> list[str]:
    """Have Accelerate divide what is divided already, in every way; return what is said."""
    said = []
    for workers in (0, 1):
        for dispatches in DISPATCHES:
            divided = prepared(make_loader(asked), dispatches=dispatches, workers=workers)
            try:
                said.append(f"{sum(1 for _ in divided)} batches came")
            except onecopy.InvalidInputError as error:
                said.append(f"{error.why}: {error.help}")
    return said


def prepared(loader: onecopy.Loader, *, dispatches: bool, workers: int = 0) -> DataLoader:
    """Do what is usual with other datasets."""
    configuration = DataLoaderConfiguration(dispatch_batches=dispatches)
    accelerator = Accelerator(cpu=True, dataloader_config=configuration)
    # Accelerate wants to know a batch size where each process keeps a part.
    size = None if dispatches else 1
    data = DataLoader(loader, batch_size=size, num_workers=workers)
    return accelerator.prepare(data)


def train(asked: argparse.Namespace) -> None:
    """Train, and keep the place."""
    accelerator = Accelerator(cpu=True)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    loader = make_loader(asked)
    accelerator.register_for_checkpointing(loader)
    if asked.resume:
        accelerator.load_state(asked.resume)
    step = 0
    for epoch in range(loader.state_dict()["epoch"], asked.epochs):
        for (labels,) in loader:
            record(asked, accelerator.process_index, epoch, labels)
            accelerator.backward(loss_of(model, labels))
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == asked.save_after:
                accelerator.save_state(asked.folder / "saved")


def deal_out(asked: argparse.Namespace) -> None:
    """Let Accelerate alone divide: one process reads all of it, and sends the others their part."""
    accelerator = Accelerator(cpu=True)
    data = prepared(make_loader(asked, world_size=1), dispatches=True)
    for epoch in range(asked.epochs):
        for (labels,) in data:
            record(asked, accelerator.process_index, epoch, labels)


def main() -> None:
    """Do what was asked for, on the ranks that torchrun has started."""
    asked = arguments()
    if asked.way == "prepared":
        said = refusals(asked)
        deal_out(asked)
        (asked.folder / f"said-{Accelerator().process_index}").write_text("\n".join(said))
    else:
        train(asked)


if __name__ == "__main__":
    main()
