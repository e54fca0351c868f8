"""Train with a StatefulDataLoader of torchdata, with workers and without."""

from __future__ import annotations

import torch
import torch.distributed as dist
from recording import arguments, loss_of, make_loader, make_model, record
from torch.nn.parallel import DistributedDataParallel
from torchdata.stateful_dataloader import StatefulDataLoader


def main() -> None:
    """Train on the ranks that torchrun has started, each keeping its own state."""
    asked = arguments()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(make_model())
    loader = make_loader(asked)
    data = StatefulDataLoader(loader, batch_size=None, num_workers=asked.workers)
    step = begun = 0
    if asked.resume:
        saved = torch.load(asked.resume / f"state-{rank}", weights_only=False)
        data.load_state_dict(saved["data"])
        begun = saved["epoch"]
    for epoch in range(begun, asked.epochs):
        loader.set_epoch(epoch)  # nobody else counts for workers that end with each epoch
        for (labels,) in data:
            record(asked, rank, epoch, labels)
            loss_of(model, labels).backward()  # type: ignore[no-untyped-call]
            step += 1
            if step == asked.save_after:
                saved = {"data": data.state_dict(), "epoch": epoch}
                torch.save(saved, asked.folder / f"state-{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
