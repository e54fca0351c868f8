"""Samples to batches in Python, where a function of the user's stands before ``batch()``."""

from collections import deque
from typing import Any

from onecopy._arrays import Arrays
from onecopy.errors import Error, InvalidInputError, told

_NUMBERS = (bool, int, float)

_HELD = 8
"""Samples that wait, at most, until two are of one form; as in the engine."""


class Collator:
    """Takes samples of one form and puts them together.

    A sample that is a dict or a tuple is put together part by part: tensors are stacked, numbers
    become a tensor, dicts and tuples of tensors are put together part by part again, and everything
    else (parsed JSON, say) becomes a list.

    Parameters
    ----------
    arrays
        Whose tensors they are.
    size
        Samples per batch.
    is_choosing
        Whether samples of another form are left out. Then it takes two of one form to begin a
        batch of another form than the one before, so that the odd one is left out and not those
        behind it; else the first of a batch is the measure.
    """

    def __init__(self, arrays: Arrays, size: int, *, is_choosing: bool) -> None:
        self._arrays = arrays
        self._size = size
        self._is_choosing = is_choosing and size > 1
        self._samples: list[Any] = []
        self._form: Any = None
        """Of this batch, or of the one before."""
        self._held: deque[tuple[Any, Any]] = deque()
        """Samples with their forms, which all differ."""
        self._odd_in_a_row = 0

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def is_due(self) -> bool:
        """Whether the batch is full, or the data have changed their form for good."""
        return len(self) == self._size or (bool(self) and self._odd_in_a_row == self._size)

    def add(self, sample: Any) -> list[Error]:
        """Take one more sample, and say why samples are left out."""
        form = self._form_of(sample, is_sample=True)
        if self._samples:
            if form != self._form:
                self._odd_in_a_row += 1
                return [_refusal(sample, form, self._form)]
            self._odd_in_a_row = 0
            self._samples.append(sample)
            return []
        is_known = form == self._form or any(form == other for _, other in self._held)
        if is_known or not self._is_choosing:
            odd = self._begin(form)
            self._samples.append(sample)
            return odd
        self._held.append((sample, form))
        if len(self._held) <= _HELD:
            return []
        oldest, its = self._held.popleft()
        return [_refusal(oldest, its, form if self._form is None else self._form)]

    def end(self) -> list[Error]:
        """Stop waiting for more samples, and say why samples are left out."""
        if not self._held:
            return []
        return self._begin(self._held[0][1] if self._form is None else self._form)

    def take(self) -> Any:
        """Return the batch, and begin the next one."""
        samples, self._samples = self._samples, []
        self._odd_in_a_row = 0
        return self._put_together(samples, is_sample=True)

    def _begin(self, form: Any) -> list[Error]:
        self._form = form
        held, self._held = self._held, deque()
        self._samples += [sample for sample, its in held if its == form]
        return [_refusal(sample, its, form) for sample, its in held if its != form]

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


def _refusal(sample: Any, form: Any, wanted: Any) -> Error:
    known = sample if isinstance(sample, dict) else {}
    return told(
        InvalidInputError,
        "batch",
        _name(sample),
        f"it is {form}, where its batch has {wanted}",
        "give pictures one size, return the same fields from map(), or do without batch()",
        shard=known.get("__shard__"),
        key=known.get("__key__"),
    )


def _name(sample: Any) -> str:
    if isinstance(sample, dict) and "__key__" in sample:
        return f"sample {sample['__key__']!r} of {sample.get('__shard__')}"
    return "a sample"
