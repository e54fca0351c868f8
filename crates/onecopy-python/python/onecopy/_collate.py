"""Samples to batches in Python, where a function of the user's stands before ``batch()``."""

from typing import Any

from onecopy._arrays import Arrays
from onecopy.errors import Error, InvalidInputError, told

_NUMBERS = (bool, int, float)


class Collator:
    """Takes samples of one form and puts them together.

    Tensors are stacked, numbers become a tensor, dicts and tuples are put together part by part,
    and everything else becomes a list.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._samples: list[Any] = []
        self._form: Any = None

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Any) -> Error | None:
        """Take one more sample, or say why it does not fit the others."""
        form = self._form_of(sample)
        if not self._samples:
            self._form = form
        elif form != self._form:
            return told(
                InvalidInputError,
                "batch",
                _name(sample),
                f"it is {form}, where its batch has {self._form}",
                "give pictures one size, return the same fields from map(), or do without batch()",
            )
        self._samples.append(sample)
        return None

    def take(self) -> Any:
        """Return the batch, and begin the next one."""
        samples, self._samples = self._samples, []
        return self._put_together(samples)

    def _form_of(self, value: Any) -> Any:
        """Return what has to be equal within a batch."""
        if self._arrays.is_array(value):
            return f"{value.dtype} {tuple(value.shape)}"
        if isinstance(value, dict):
            return {key: self._form_of(part) for key, part in value.items()}
        if isinstance(value, tuple):
            return tuple(self._form_of(part) for part in value)
        if isinstance(value, _NUMBERS):
            return "number"
        return "any"

    def _put_together(self, values: list[Any]) -> Any:
        first = values[0]
        if self._arrays.is_array(first):
            return self._arrays.stack(values)
        if isinstance(first, dict):
            return {key: self._put_together([value[key] for value in values]) for key in first}
        if isinstance(first, tuple):
            columns = [self._put_together(list(column)) for column in zip(*values, strict=True)]
            return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
        if isinstance(first, _NUMBERS):
            return self._arrays.numbers(values)
        return values


def _name(sample: Any) -> str:
    if isinstance(sample, dict) and "__key__" in sample:
        return f"sample {sample['__key__']!r} of {sample.get('__shard__')}"
    return "a sample"
