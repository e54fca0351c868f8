"""One pass over the data of a loader."""

import atexit
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from onecopy import _onecopy, _steps
from onecopy._arrays import chosen
from onecopy._chain import Chain
from onecopy._steps import Context
from onecopy.ledger import Ledger


class LoaderIterator(Iterator[Any]):
    """One pass over the data. It runs from its first moment until it is at its end or dropped.

    Parameters
    ----------
    chain
        What was asked for.
    load
        The engine's part of it.
    """

    def __init__(self, chain: Chain, load: _onecopy.Load) -> None:
        self._load = load
        # Generators hold the load and never this object: no cycle, so that leaving a loop ends it.
        context = Context(
            arrays=chosen(chain.library),
            is_choosing=chain.settings.on_error != "raise",
            load=load,
            ledger=load.ledger,
        )
        stream: Iterator[Any] = _steps.samples(load, context, chain.is_array_field)
        if chain.functions:
            stream = _steps.decoded(stream, dict(chain.functions), context)
        _, left = chain.divided()
        for step in left:
            stream = _steps.apply(stream, step, context)
        self._stream = stream
        # Two threads that take from one pass take turns; a generator would refuse the second.
        self._turn = threading.Lock()
        _RUNNING.add(self)

    def __iter__(self) -> "LoaderIterator":
        return self

    def __next__(self) -> Any:
        _onecopy.check_not_asking()
        try:
            with self._turn:
                return next(self._stream)
        except BaseException:  # the end, an error, or Ctrl-C: nothing may go on running
            self.close()
            raise

    @property
    def ledger(self) -> Ledger:
        """What happened until now."""
        return Ledger.of(self._load.ledger)

    def close(self) -> None:
        """Stop everything and wait for its threads.

        Tensors that were handed out stay valid. A closed iterator gives nothing more.
        """
        self._stream = iter(())
        self._load.close()
        _steps.log_waiting()


_RUNNING: "weakref.WeakSet[LoaderIterator]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End what still runs before Python ends."""
    for iterator in list(_RUNNING):
        iterator.close()
