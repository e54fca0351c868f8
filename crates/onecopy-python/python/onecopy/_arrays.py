"""The engine's tensors as tensors of torch, numpy or jax, and such tensors stacked to batches."""

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onecopy._onecopy import Tensor
from onecopy._options import Library
from onecopy.errors import UnsupportedError, told

_OLDEST_NUMPY = "1.23"
"""The first numpy with ``from_dlpack``."""


@dataclass(frozen=True)
class Arrays:
    """What one library does with tensors."""

    name: Library
    share: Callable[[Tensor], Any]
    """The engine's tensor as the library's, over the same memory."""
    is_array: Callable[[object], bool]
    stack: Callable[[Sequence[Any]], Any]
    """Equal arrays along a new first axis, in the same order of memory."""
    numbers: Callable[[Sequence[Any]], Any]
    """Python numbers as an array: int64, float64 or bool."""


def chosen(library: Library | None) -> Arrays:
    """Return the library asked for; for None torch, or numpy where torch cannot be imported."""
    if library is not None:
        return _named(library)
    return _named("torch" if _has_torch() else "numpy")


@functools.cache
def _has_torch() -> bool:
    try:
        importlib.import_module("torch")
    except (ImportError, OSError):  # OSError: a library that torch needs is missing
        return False
    return True


@functools.cache
def _named(library: Library) -> Arrays:
    made = {"torch": _torch, "numpy": _numpy, "jax": _jax}[library]
    try:
        return made()
    except ImportError as error:
        raise told(
            UnsupportedError,
            "give tensors of",
            library,
            f"it cannot be imported ({error})",
            f"pip install {library}, or choose another with as_=",
        ) from error


def _torch() -> Arrays:
    import torch
    import torch.utils.data  # so that loaders become datasets, see onecopy.torch

    def is_array(value: object) -> bool:
        numpy = sys.modules.get("numpy")
        return isinstance(value, torch.Tensor) or (
            numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))
        )

    def stack(arrays: Sequence[Any]) -> Any:
        arrays = [torch.as_tensor(array) for array in arrays]
        if all(_is_channels_last(tuple(array.shape), array.stride()) for array in arrays):
            return torch.stack([array.permute(1, 2, 0) for array in arrays]).permute(0, 3, 1, 2)
        return torch.stack(arrays)

    def numbers(values: Sequence[Any]) -> Any:
        dtype = torch.float64 if any(isinstance(value, float) for value in values) else None
        return torch.tensor(list(values), dtype=dtype)

    return Arrays(
        name="torch",
        share=torch.from_dlpack,
        is_array=is_array,
        stack=stack,
        numbers=numbers,
    )


def _numpy() -> Arrays:
    import numpy as np

    if not hasattr(np, "from_dlpack"):
        raise ImportError(f"numpy {np.__version__} is older than {_OLDEST_NUMPY}")

    def stack(arrays: Sequence[Any]) -> Any:
        if all(
            _is_channels_last(array.shape, [stride // array.itemsize for stride in array.strides])
            for array in arrays
        ):
            return np.stack([array.transpose(1, 2, 0) for array in arrays]).transpose(0, 3, 1, 2)
        return np.stack(arrays)

    return Arrays(
        name="numpy",
        share=np.from_dlpack,
        is_array=lambda value: isinstance(value, (np.ndarray, np.generic)),
        stack=stack,
        numbers=np.array,
    )


def _jax() -> Arrays:
    import jax
    import jax.numpy as jnp

    return Arrays(
        name="jax",
        share=jax.dlpack.from_dlpack,
        is_array=lambda value: isinstance(value, jax.Array),
        stack=jnp.stack,
        numbers=jnp.array,
    )


def _is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Say whether this is a picture [C, H, W] over memory in the order H, W, C."""
    if len(shape) != 3:  # noqa: PLR2004 - channels, height, width
        return False
    channels, _, width = shape
    return channels > 1 and tuple(strides) == (1, width * channels, channels)
