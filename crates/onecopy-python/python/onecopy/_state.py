"""Where an iteration stands, as a small dict that another run can go on from."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from onecopy import _onecopy
from onecopy._settings import Settings
from onecopy.errors import Error, InvalidInputError, told

VERSION = 1
"""Of the form of states."""

_NUMBERS = ("epoch", "batch", "lanes", "groups", "window", "steps", "made")
_TEXTS = ("position", "tail", "dataset")


@dataclass(frozen=True)
class State:
    """What :meth:`Loader.state_dict` gives, read back."""

    epoch: int
    position: str | None = None
    """Behind how many samples of all ranks, or where lanes stand; None begins the epoch."""
    batch: int | None = None
    """Samples of a global batch. This and what follows is None where nothing was read yet."""
    lanes: int | None = None
    groups: int | None = None
    window: int | None = None
    steps: int | None = None
    """``steps_per_epoch``, where it was given."""
    made: int | None = None
    """How many of these steps the process has made, where samples are not counted."""
    shuffle: tuple[int, int] | None = None
    mix: tuple[str, ...] | None = None
    """How several sources are mixed."""
    tail: str | None = None
    dataset: str | None = None
    part: tuple[int, int] | None = None
    """Which process of how many (workers of all ranks), where the position is that of its lanes."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        values: dict[str, Any] = {"onecopy": VERSION, "epoch": self.epoch}
        for name in (*_NUMBERS[1:], *_TEXTS):
            value = getattr(self, name)
            if value is not None:
                values[name] = value
        if self.shuffle is not None:
            values["shuffle"] = list(self.shuffle)
        if self.part is not None:
            values["part"] = list(self.part)
        if self.mix is not None:
            values["mix"] = list(self.mix)
        return values

    @classmethod
    def of(cls, values: Any) -> "State":
        """Read ``values``, which may come from anywhere."""
        if not isinstance(values, Mapping):
            raise _damaged(f"it is a {type(values).__name__}, not a dict")
        version = values.get("onecopy")
        if version != VERSION:
            raise _damaged(f'its entry "onecopy" is {version!r}, and this version knows {VERSION}')
        read: dict[str, Any] = {}
        for name in _NUMBERS:
            read[name] = _whole(values, name)
        for name in _TEXTS:
            value = values.get(name)
            if value is not None and not isinstance(value, str):
                raise _damaged(f'its entry "{name}" is no text')
            read[name] = value
        for name in ("shuffle", "part"):
            read[name] = _pair(values, name)
        read["mix"] = _lines(values, "mix")
        if read["epoch"] is None:
            raise _damaged("it does not say of which epoch it is")
        return cls(**read)

    def check(self, now: "Progress") -> None:
        """Raise where the data or their order are others than those that the state is of."""
        if self.batch is None:
            return
        order = now.order
        for name, before, found in (
            ("the dataset (names and lengths of its shards)", self.dataset, order.dataset),
            ("shuffle (capacity and seed)", self.shuffle, now.shuffle),
            *_differences(self.mix, now.mix),
            ("the global batch", self.batch, order.global_batch),
            ("tail", self.tail, now.tail),
            ("steps_per_epoch", self.steps, now.steps),
            ("the number of lanes", self.lanes, order.lanes),
            ("the number of lane groups", self.groups, order.groups),
            ("the window of a lane", self.window, order.window),
            ("the process (which worker of all ranks, of how many)", self.part, now.process()),
        ):
            if before != found and not (before is None and self.position is None):
                raise told(
                    InvalidInputError,
                    "go on from",
                    "a state",
                    f"it is of another order: {name} was {before} and is {found} now",
                    "load the same data with the same shuffle, seed and global batch (batch size "
                    "times ranks), or begin the epoch again",
                )


@dataclass
class Progress:
    """How far an iteration has come. Outlives its load."""

    epoch: int
    order: _onecopy.Order
    spots: _onecopy.Spots | None
    shuffle: tuple[int, int] | None
    mix: tuple[str, ...] | None
    tail: str
    part: tuple[int, int, int, int]
    steps: int | None
    """``steps_per_epoch``, where it was given."""
    begun_at: int
    """Behind how many samples of all ranks it began, where samples are counted."""
    made: int
    """How many steps of the epoch the process had made before."""
    ledger: _onecopy.RunningLedger
    given: int = 0
    """Batches, or samples where nobody makes batches."""
    passes: int = 1
    """How often the shards were begun until the last good sample."""
    is_over: bool = False

    @classmethod
    def of(cls, load: _onecopy.Load, settings: Settings) -> "Progress":
        """Return that of an iteration which begins."""
        order, position = load.order, settings.position
        return cls(
            epoch=settings.epoch,
            order=order,
            spots=load.spots,
            shuffle=settings.shuffle,
            mix=_mix_of(settings),
            tail=settings.tail or "short",
            part=settings.part,
            steps=settings.steps_per_epoch,
            begun_at=int(position) if position and order.is_counted else 0,
            made=settings.steps_made,
            ledger=load.ledger,
        )

    def received(self) -> None:
        """Note that one more was given."""
        self.given += 1
        self.found()
        if self.spots is not None:
            self.spots.receive()

    def found(self) -> None:
        """Note that the shards, as often as they were begun until now, had a good sample."""
        self.passes = self.ledger.passes()

    def process(self) -> tuple[int, int] | None:
        """Return which process of how many this is, where the position is that of its lanes."""
        rank, ranks, worker, workers = self.part
        return None if self.order.is_counted else (rank * workers + worker, ranks * workers)

    def has_all(self) -> bool:
        """Say whether all steps are made that were asked for, where samples are not counted."""
        return self.order.steps_here is not None and self.given >= self.order.steps_here

    def is_fruitless(self) -> bool:
        """Say whether a whole pass over the shards has given nothing."""
        return self.ledger.passes() > self.passes + 1

    def is_short(self) -> bool:
        """Say whether more steps are to be made, though samples were left out here."""
        _, ranks, worker, workers = self.part
        if not self.order.is_counted or (ranks == 1 and self.steps is None):
            return False
        # A short batch, where there is one, is the last.
        first = -(-self.begun_at // self.order.global_batch)
        steps = range(first + (worker - first) % workers, self.order.totals[2], workers)
        return self.given < len(steps)

    def state(self) -> State:
        """Return where it stands."""
        workers = self.part[3]
        order = self.order
        # Behind the last sample is the beginning of the next epoch.
        is_at_end = order.is_counted and self._position() == str(order.totals[1])
        is_next = workers == 1 and (self.is_over or is_at_end or self.has_all())
        return State(
            epoch=self.epoch + 1 if is_next else self.epoch,
            position=None if is_next else self._position(),
            batch=order.global_batch,
            lanes=order.lanes,
            groups=order.groups,
            window=order.window,
            steps=self.steps,
            made=None if is_next or order.steps_here is None else self.made + self.given,
            shuffle=self.shuffle,
            mix=self.mix,
            tail=self.tail,
            dataset=order.dataset,
            part=None if is_next else self.process(),
        )

    def _position(self) -> str:
        if self.spots is not None:
            return self.spots.text()
        _, _, worker, workers = self.part
        samples = self.order.totals[1]
        if self.is_over:
            return str(samples)
        if self.given == 0:
            return str(self.begun_at)
        # This process makes every workers-th step.
        step = self.begun_at // self.order.global_batch
        step += (worker - step) % workers
        step += (self.given - 1) * workers
        return str(min((step + 1) * self.order.global_batch, samples))


def _mix_of(settings: Settings) -> tuple[str, ...] | None:
    """Return what the order of several sources follows from, beside their data."""
    if not settings.sources:
        return None
    weights = settings.weights or (1.0,) * len(settings.sources)
    return (
        "weights " + " ".join(map(repr, weights)),
        f"seed {settings.mix_seed}",
        f"stop {settings.stop}",
        "shuffles " + " ".join(_shuffle(source) for source in settings.sources),
    )


def _shuffle(settings: Settings) -> str:
    return "none" if settings.shuffle is None else "{}/{}".format(*settings.shuffle)


def _differences(
    before: tuple[str, ...] | None, now: tuple[str, ...] | None
) -> list[tuple[str, str | None, str | None]]:
    """Return what two mixtures are, line by line; of one that is none, nothing."""
    lines = zip_longest(before or (), now or ())
    return [("the mixture", one, other) for one, other in lines]


def _lines(values: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise _damaged(f'its entry "{name}" is {value!r}')
    return tuple(value)


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise _damaged(f'its entry "{name}" is {value!r}')
    return value


def _pair(values: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise _damaged(f'its entry "{name}" is {value!r}')
    first, second = (_whole({name: one}, name) for one in value)
    if first is None or second is None:
        raise _damaged(f'its entry "{name}" is {value!r}')
    return first, second


def _damaged(why: str) -> Error:
    return told(
        InvalidInputError,
        "go on from",
        "a state",
        why,
        "give what state_dict() gave, or begin the epoch again",
    )
