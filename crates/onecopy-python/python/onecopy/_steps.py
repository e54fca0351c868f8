"""The steps of a chain that Python takes, on samples or batches that come from the engine."""

import io
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onecopy import _onecopy
from onecopy._arrays import Arrays
from onecopy._collate import Collator
from onecopy._onecopy import RunningLedger
from onecopy._options import Tail
from onecopy._state import Progress
from onecopy.errors import (
    CorruptError,
    Error,
    InvalidInputError,
    LimitReachedError,
    NotFoundError,
    UnsupportedError,
    told,
)

KEY = "__key__"
SHARD = "__shard__"

LEAVE_OUT = 'leave such samples out with on_error="skip"'
"""What to do about samples that are damaged."""

PICTURES = ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "pbm", "pnm", "bmp", "gif", "tif", "tiff")
"""Fields that ``decode("pil")`` takes for pictures, by their last extension."""

LOG = logging.getLogger("onecopy")


@dataclass(frozen=True)
class Map:
    """Calls a function on each sample or batch."""

    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Select:
    """Takes fields, as a tuple or a dict."""

    kind: Literal["tuple", "dict"]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Collate:
    """Makes batches."""

    size: int
    tail: Tail

    @property
    def is_dropping_last(self) -> bool:
        """Whether a last batch that is not full is left out."""
        return self.tail == "drop"


Step = Map | Select | Collate


@dataclass(frozen=True)
class Context:
    """What steps need to know of the load they belong to."""

    arrays: Arrays
    is_choosing: bool
    """Whether samples may be left out."""
    load: _onecopy.Load
    ledger: RunningLedger
    progress: Progress | None = None

    def leave_out(self, error: Error) -> None:
        """Raise ``error``, or count it, as the loader's ``on_error`` and ``max_skipped`` say."""
        answer = self.load.ask(error)
        if answer == "raise":
            raise error
        if self.progress is not None and self.progress.is_fruitless():
            raise told(
                NotFoundError,
                "find samples in",
                "all shards that this process reads",
                "all of them were left out, and reading them again would give none",
                'end at the first error with on_error="raise"',
            ) from error
        spent = self.ledger.skipped(error.kind)
        if spent is not None:
            before, hint = spent
            if not before:  # nothing may be left out: as if every error ended the load
                raise error
            raise told(
                type(error),
                error.doing,
                error.target,
                f"{error.why}; {before}",
                hint,
                shard=error.shard,
                key=error.key,
            ) from error
        if answer == "warn":
            # One line: what to do is the same for every sample.
            LOG.warning("sample left out (%s): %s", error.kind, str(error).partition("\n")[0])


def log_waiting() -> None:
    """Log what the engine's threads had to say."""
    for message in _onecopy.drain_log():
        LOG.warning("%s", message)


def parts(name: str) -> Iterator[str]:
    """Give the names under which a decoder for the field ``name`` may be kept."""
    for one in name.split(";"):
        field = one.strip().partition("/")[0]
        yield field
        yield field.rpartition(".")[2]


def samples(
    load: _onecopy.Load, context: Context, is_array_field: Callable[[str], bool]
) -> Iterator[dict[str, Any]]:
    """Give the load's samples or batches as dicts."""
    while True:
        batch = load.next()
        log_waiting()
        if batch is None:
            return
        sample = _as_dict(batch, context.arrays, is_array_field)
        del batch  # its bytes may lie in memory that the engine needs for the next one
        yield sample


def _as_dict(
    batch: _onecopy.Batch, arrays: Arrays, is_array_field: Callable[[str], bool]
) -> dict[str, Any]:
    """Return the batch's columns by name."""
    sample: dict[str, Any] = {KEY: batch.keys, SHARD: batch.shards}
    if not batch.is_batched:
        sample = {name: values[0] for name, values in sample.items()}
    for name, kind, values in batch.columns():
        value: Any
        if isinstance(values, _onecopy.Tensor):
            is_number = not batch.is_batched and not values.shape and not is_array_field(name)
            value = values.__index__() if is_number else arrays.share(values)
        else:
            items = _parsed(batch, name, values) if kind == "json" else values
            value = items if batch.is_batched else items[0]
        if name in {KEY, SHARD}:
            continue  # a member of this name must not stand in for the sample's own
        field, slash, array = name.partition("/")
        if slash:
            sample.setdefault(field, {})[array] = value
        else:
            sample[name] = value
    return sample


def _parsed(batch: _onecopy.Batch, name: str, items: Sequence[bytes | str]) -> list[Any]:
    """Parse what the engine has checked to be JSON."""
    values = []
    for key, shard, item in zip(batch.keys, batch.shards, items, strict=True):
        try:
            values.append(json.loads(item))
        except (ValueError, RecursionError) as cause:
            # Python's limits, where they are lower than usual or the stack is nearly full.
            raise told(
                LimitReachedError,
                f"parse field {name!r} of",
                f"sample {key!r} of {shard}",
                f"it is JSON, and Python cannot hold it: {cause}",
                "raise sys.setrecursionlimit() or sys.set_int_max_str_digits()",
            ) from cause
    return values


def decoded(
    stream: Iterable[dict[str, Any]],
    functions: Mapping[str, Callable[[bytes], Any]],
    context: Context,
) -> Iterator[dict[str, Any]]:
    """Call the decoding functions on the fields they are for."""
    for sample in stream:
        for name, value in sample.items():
            if name.startswith("__"):
                continue
            function = next((functions[part] for part in parts(name) if part in functions), None)
            if function is None:
                continue
            try:
                sample[name] = function(value)
            except Error:
                raise
            except Exception as cause:  # noqa: BLE001 - a decoder of the user's may raise anything
                error = told(
                    CorruptError,
                    f"decode field {name!r} of",
                    f"sample {sample[KEY]!r} of {sample[SHARD]}",
                    f"{type(cause).__name__}: {cause}",
                    LEAVE_OUT,
                    shard=sample[SHARD],
                    key=sample[KEY],
                )
                error.__cause__ = cause
                context.leave_out(error)
                break
        else:
            yield sample


def pil(data: bytes) -> Any:
    """Return the picture in ``data`` as a ``PIL.Image`` in RGB."""
    try:
        from PIL import Image
    except ImportError as error:
        raise told(
            UnsupportedError,
            "decode",
            "with pil",
            f"it cannot be imported ({error})",
            'pip install pillow, or use decode("rgb")',
        ) from error
    return Image.open(io.BytesIO(data)).convert("RGB")


def selected(stream: Iterable[Any], step: Select) -> Iterator[Any]:
    """Take the fields of each sample or batch."""
    for sample in stream:
        if not isinstance(sample, Mapping):
            raise told(
                InvalidInputError,
                "take fields of",
                f"a {type(sample).__name__}",
                "it has no names",
                f"use to_{step.kind}() before what makes samples something else than dicts",
            )
        if step.kind == "tuple":
            yield tuple(_field(sample, name) for name in step.names)
        elif step.names:
            yield {name: _field(sample, name) for name in step.names}
        else:
            yield dict(sample)


def _field(sample: Mapping[str, Any], name: str) -> Any:
    if name in sample:
        return sample[name]
    for one in name.split(";"):
        if one.strip() in sample:
            return sample[one.strip()]
    raise told(
        NotFoundError,
        f"find field {name!r} in",
        f"sample {sample.get(KEY)!r} of {sample.get(SHARD)}",
        f"it has only {', '.join(str(field) for field in sample)}",
        'name alternatives as "jpg;png"',
    )


def collated(stream: Iterable[Any], step: Collate, context: Context) -> Iterator[Any]:
    """Make batches of ``step.size`` samples."""
    context.ledger.note(
        "batches were put together in Python, because of a function before batch(): "
        "one more copy of each tensor, beyond the hops above"
    )
    collator = Collator(context.arrays, step.size, is_choosing=context.is_choosing)
    for sample in stream:
        odd = collator.add(sample)
        for problem in odd:
            context.leave_out(problem)
        if context.progress is not None and not odd:
            context.progress.found()
        if collator.is_due:
            context.ledger.batched()
            yield collator.take()
    for problem in collator.end():
        context.leave_out(problem)
    if len(collator) and not step.is_dropping_last:
        context.ledger.batched()
        yield collator.take()


def mapped(stream: Iterable[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    """Give what ``function`` makes of each sample."""
    for sample in stream:
        try:
            made = function(sample)
        except StopIteration as cause:
            # Passed on it would look like the end of the data, and what is left would be lost.
            why = "the function of map() raised StopIteration: give next() a default there"
            raise RuntimeError(why) from cause
        yield made


def apply(stream: Iterator[Any], step: Step, context: Context) -> Iterator[Any]:
    """Give what ``step`` makes of ``stream``."""
    if isinstance(step, Map):
        return mapped(stream, step.function)
    if isinstance(step, Select):
        return selected(stream, step)
    return collated(stream, step, context)
