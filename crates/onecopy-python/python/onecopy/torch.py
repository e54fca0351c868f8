"""What torch has to know of loaders, and loaders of torch. Nothing here imports torch by itself."""

import sys
import types
from dataclasses import dataclass
from typing import Any, TypeVar

_L = TypeVar("_L")

_DATASET_CLASSES: dict[type, Any] = {}
"""The classes that are datasets, too, by what they are besides."""


@dataclass(frozen=True)
class Worker:
    """The part of a ``DataLoader`` worker."""

    index: int
    count: int
    base_seed: int
    """Drawn anew by torch for each iteration of the ``DataLoader``; the same in all its workers."""


def dataset_class(loader: type[_L]) -> type[_L]:
    """Return ``loader`` as a ``torch.utils.data.IterableDataset`` if torch has been imported.

    That is a subclass of both. ``loader`` itself becomes a virtual subclass, for its objects from
    before torch was imported: ``isinstance`` says yes for them, too.
    """
    dataset = _loaded("torch.utils.data", "IterableDataset")
    if dataset is None:
        return loader
    if loader not in _DATASET_CLASSES:
        body = {"__module__": loader.__module__, "__doc__": loader.__doc__}
        both = types.new_class(loader.__name__, (loader, dataset), {}, lambda of: of.update(body))
        dataset.register(loader)
        _DATASET_CLASSES[loader] = both
    known: type[_L] = _DATASET_CLASSES[loader]
    return known


def worker() -> Worker | None:
    """Return which ``DataLoader`` worker this process is, if it is one."""
    get_worker_info = _loaded("torch.utils.data", "get_worker_info")
    info = get_worker_info() if get_worker_info is not None else None
    if info is None:
        return None
    return Worker(index=info.id, count=info.num_workers, base_seed=info.seed - info.id)


def world() -> tuple[int, int] | None:
    """Return which rank of ``torch.distributed`` this process is, and of how many, if it is one."""
    is_initialized = _loaded("torch.distributed", "is_initialized")
    if is_initialized is None or not is_initialized():
        return None
    get_rank = _loaded("torch.distributed", "get_rank")
    get_world_size = _loaded("torch.distributed", "get_world_size")
    return get_rank(), get_world_size()


def is_dealt_out(loader: object) -> bool:
    """Return whether Accelerate is about to divide what ``loader`` gives among its processes.

    It wraps a ``DataLoader`` of an iterable dataset so that one process reads and hands parts of
    each batch to the others, or so that each process reads all and keeps a part.
    """
    gradient_state = _loaded("accelerate.state", "GradientState")
    active: Any = gradient_state().active_dataloader if gradient_state is not None else None
    dataset = getattr(active, "dataset", None)
    # Its wrappers say of their __class__ that it is DataLoader.
    if type(active).__name__ == "DataLoaderDispatcher":
        return dataset is loader and bool(active.state.num_processes > 1)
    is_part = type(dataset).__name__ == "IterableDatasetShard"
    return is_part and getattr(dataset, "dataset", None) is loader


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)
