"""Train with Lightning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from recording import arguments, loss_of, make_loader, make_model, record

if TYPE_CHECKING:
    import argparse

    import onecopy


class Module(pl.LightningModule):
    """A model and its data."""

    def __init__(self, asked: argparse.Namespace) -> None:
        super().__init__()
        self.asked = asked
        self.model = make_model()
        self.loader = make_loader(asked)

    def train_dataloader(self) -> onecopy.Loader:
        """Give the loader itself."""
        return self.loader

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the place in the data beside the weights."""
        checkpoint["loader"] = self.loader.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from there."""
        self.loader.load_state_dict(checkpoint["loader"])

    def training_step(self, batch: tuple[torch.Tensor], _index: int) -> torch.Tensor:
        """Take one step."""
        (labels,) = batch
        record(self.asked, self.global_rank, self.current_epoch, labels)
        return loss_of(self.model, labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Name the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    """Train on the ranks that torchrun has started, keeping a checkpoint of every step."""
    asked = arguments()
    keeping = ModelCheckpoint(
        asked.folder, "{step}", save_top_k=-1, every_n_train_steps=asked.save_after
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=asked.epochs,
        callbacks=[keeping],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(asked), ckpt_path=asked.resume, weights_only=False)


if __name__ == "__main__":
    main()
