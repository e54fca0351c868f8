"""Samples to batches in Python, where a function of the user's stands before ``batch()``."""

from typing import Any

from onecopy._arrays import Arrays
from onecopy.errors import Error, InvalidInputError, told

_NUMBERS = (bool, int, float)


class Collator:
    """Takes samples of one form and puts them together.

    A sample that is a dict or a tuple is put together part by part: tensors are stacked, numbers
    become a tensor, dicts and tuples of tensors are put together part by part again, and everything
    else (parsed JSON, say) becomes a list.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._samples: list[Any] = []
        self._form: Any = None

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Any) -> Error | None:
        """Take one more sample, or say why it does not fit the others."""
        form = self._form_of(sample, is_sample=True)
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
        return self._put_together(samples, is_sample=True)

    def _is_of_arrays(self, value: Any) -> bool:
        """Say whether there are arrays in these dicts and tuples, and nothing else."""
        if isinstance(value, dict):
            value = tuple(value.values())
        if isinstance(value, tuple):
            return bool(value) and all(self._is_of_arrays(part) for part in value)
        return self._arrays.is_array(value)

    def _form_of(self, value: Any, *, is_sample: bool = False) -> Any:
        """Return what has to be equal within a batch."""
        if self._arrays.is_array(value):
            return f"{value.dtype} {tuple(value.shape)}"
        if isinstance(value, dict) and (is_sample or self._is_of_arrays(value)):
            return {key: self._form_of(part) for key, part in value.items()}
        if isinstance(value, tuple) and (is_sample or self._is_of_arrays(value)):
            return tuple(self._form_of(part) for part in value)
        if isinstance(value, _NUMBERS):
            return "number"
        return "any"

    def _put_together(self, values: list[Any], *, is_sample: bool = False) -> Any:
        first = values[0]
        if self._arrays.is_array(first):
            return self._arrays.stack(values)
        is_in_parts = is_sample or self._is_of_arrays(first)
        if isinstance(first, dict) and is_in_parts:
            return {key: self._put_together([value[key] for value in values]) for key in first}
        if isinstance(first, tuple) and is_in_parts:
            columns = [self._put_together(list(column)) for column in zip(*values, strict=True)]
            return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
        if isinstance(first, _NUMBERS):
            return self._arrays.numbers(values)
        return values


def _name(sample: Any) -> str:
    if isinstance(sample, dict) and "__key__" in sample:
        return f"sample {sample['__key__']!r} of {sample.get('__shard__')}"
    return "a sample"
