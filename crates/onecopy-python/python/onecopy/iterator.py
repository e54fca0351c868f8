"""One pass over the data of a loader."""

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from onecopy import _onecopy, _steps
from onecopy._arrays import chosen
from onecopy._chain import Chain
from onecopy._state import Progress
from onecopy._steps import Context
from onecopy.errors import NotFoundError, told
from onecopy.ledger import Ledger

REPEATED = (
    "samples were left out, so the last batch of this rank was given again, until it had made as "
    "many steps as the others"
)


@dataclass(frozen=True)
class Pass:
    """One pass over the data: what was asked for, the engine's part, and how far it has come."""

    chain: Chain
    load: _onecopy.Load
    progress: Progress


class LoaderIterator(Iterator[Any]):
    """One pass over the data. It runs from its first moment until it is at its end or dropped.

    Parameters
    ----------
    begun
        The pass.
    at_nothing
        Begins the one that takes its place if it has nothing to give.
    """

    def __init__(self, begun: Pass, at_nothing: Callable[[], Pass] | None = None) -> None:
        self._at_nothing = at_nothing
        self._start(begun)
        # Two threads that take from one pass take turns; a generator would refuse the second.
        self._turn = threading.Lock()
        _RUNNING.add(self)

    def _start(self, begun: Pass) -> None:
        chain, load = begun.chain, begun.load
        self._load, self._progress = load, begun.progress
        settings = chain.settings
        is_given_out = settings.part[1] > 1 or settings.steps_per_epoch is not None
        self._is_filling = settings.on_error != "raise" and is_given_out
        self._last: Any = None
        self._is_closed = False
        # Generators hold the load and never this object: no cycle, so that leaving a loop ends it.
        self._stream = stream_of(chain, load, begun.progress)

    def __iter__(self) -> "LoaderIterator":
        return self

    def __next__(self) -> Any:
        _onecopy.check_not_asking()
        try:
            with self._turn:
                given = self._next()
                self._progress.received()
                if self._is_filling:
                    self._last = given
                return given
        except StopIteration:
            if self._is_closed:
                raise
            if self._is_filling and self._progress.is_short():
                return self._again()
            self._last = None
            self._progress.is_over = True
            self._end()
            begin, self._at_nothing = self._at_nothing, None
            if begin is None or self._progress.given > 0:
                raise
        except BaseException:  # an error, or Ctrl-C: nothing may go on running
            self.close()
            raise
        self._start(begin())
        return next(self)

    def _again(self) -> Any:
        """Return the last batch once more: other ranks would wait for this one for ever."""
        if self._last is None:
            self.close()
            raise told(
                NotFoundError,
                "make a step with",
                "the samples of this rank",
                "all of them were left out, and other ranks make steps with theirs",
                'end at the first error with on_error="raise", to see what is wrong with them',
            )
        self._progress.given += 1
        self._load.ledger.note(REPEATED)
        return self._last

    def _next(self) -> Any:
        if self._progress.has_all():
            # The engine goes on where samples may be left out of what it has given.
            raise StopIteration
        return next(self._stream)

    @property
    def ledger(self) -> Ledger:
        """What happened until now."""
        return Ledger.of(self._load.ledger)

    def close(self) -> None:
        """Stop everything and wait for its threads.

        Tensors that were handed out stay valid. A closed iterator gives nothing more.
        """
        self._is_closed = True
        self._at_nothing = self._last = None
        self._end()

    def _end(self) -> None:
        self._stream = iter(())
        self._load.close()
        _steps.log_waiting()


def stream_of(chain: Chain, load: _onecopy.Load, progress: Progress | None = None) -> Iterator[Any]:
    """Give what ``chain`` makes of what ``load`` gives."""
    context = Context(
        arrays=chosen(chain.library),
        is_choosing=chain.settings.on_error != "raise",
        load=load,
        ledger=load.ledger,
        progress=progress,
    )
    stream: Iterator[Any] = _steps.samples(load, context, chain.is_array_field)
    if chain.functions:
        stream = _steps.decoded(stream, dict(chain.functions), context)
    _, left = chain.divided()
    for step in left:
        stream = _steps.apply(stream, step, context)
    return stream


_RUNNING: "weakref.WeakSet[LoaderIterator]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End what still runs before Python ends."""
    for iterator in list(_RUNNING):
        iterator.close()
