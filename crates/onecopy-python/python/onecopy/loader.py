"""The loader: a lazy chain of steps, each of which gives a new one."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from onecopy import _onecopy, _options, plan
from onecopy import torch as _torch
from onecopy._access import Access
from onecopy._arrays import chosen
from onecopy._chain import Chain
from onecopy._refining import shown
from onecopy._state import Progress, State
from onecopy._steps import Map, Select
from onecopy.errors import InvalidInputError, told
from onecopy.iterator import LoaderIterator, Pass
from onecopy.ledger import Ledger
from onecopy.plan import Plan


class Loader(Access, Iterable[Any]):
    """Data to load, and how: made by :func:`open`, refined step by step, read by iterating.

    Each step (``shuffle``, ``decode``, ``map``, ``to_tuple``, ``to_dict``, ``batch``, ``to``)
    returns a new loader, leaves this one as it is, and reads nothing. A loader holds plain settings
    only, so it can be pickled and copied; each iteration starts an engine of its own, which ends
    with it.

    When torch has been imported, a loader is a ``torch.utils.data.IterableDataset``. Ranks of
    ``torch.distributed`` or torchrun divide each step among themselves, which needs an ``index=``
    or ``steps_per_epoch=`` (see :func:`open`); so do workers of a ``DataLoader``, which take turns
    batch by batch. Without an index shards are divided. Both are looked up when iteration starts.
    Give batches ready made: ``DataLoader(loader, batch_size=None)``. A worker is another process,
    to which each batch is copied: onecopy decodes on threads, so ``num_workers=0`` or iterating
    without a ``DataLoader`` is faster.

    Samples are dicts: ``"__key__"`` and ``"__shard__"`` are strings, every other entry is a field,
    ``bytes`` until :meth:`decode`.
    """

    def __init__(self, chain: Chain, *, epoch: int = 0, is_epoch_set: bool = False) -> None:
        self._chain = chain
        self._epoch = epoch
        self._is_epoch_set = is_epoch_set
        self._state: State | None = None
        """Where the next iteration goes on."""
        self._order: State | None = None
        """A state whose lanes and windows all epochs from now on have."""
        self._loaded_in: int | None = None
        """The process in which a state was loaded."""
        self._progress: Progress | None = None
        """How far the last iteration of this process has come."""
        self._begun: tuple[int, State | None] | None = None
        """Epoch and state with which it began."""
        self._ledger: tuple[int, _onecopy.RunningLedger] | None = None
        """The process that iterated last, and its account: a forked one has a copy."""

    @classmethod
    def of(cls, chain: Chain, epoch: int = 0, *, is_epoch_set: bool = False) -> "Loader":
        """Return a loader, of a class that torch knows for a dataset where torch is there."""
        chosen(chain.library)  # imports it, and says at once where that cannot be
        return _torch.dataset_class(Loader)(chain, epoch=epoch, is_epoch_set=is_epoch_set)

    def __reduce__(self) -> tuple[Any, ...]:
        chain = self._chain
        world = _torch.world()
        if world is not None and chain.ranks.world_size is None:
            # A worker that is spawned knows nothing of the ranks of the process that it works for.
            ranks = replace(chain.ranks, rank=world[0], world_size=world[1])
            chain = replace(chain, ranks=ranks)
        return _again, (chain, self._epoch, self._is_epoch_set, self._state, self._order)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is, for the order of a shuffle.

        Without it, the first iteration is epoch 0 and each one counts on. In workers of a
        ``DataLoader`` that end with each epoch nobody counts: there the order is drawn from torch's
        seed, unless this is called before each epoch.

        Parameters
        ----------
        epoch
            From 0. Later iterations count on from here.
        """
        self._check_divided_once()
        self._epoch = _options.integer("epoch", epoch)
        self._is_epoch_set = True
        self._begun = None
        if self._progress is not None and self._progress.epoch != self._epoch:
            self._progress = None
        if self._state is not None and self._state.epoch != self._epoch:
            self._state = None

    def state_dict(self) -> dict[str, Any]:
        """Return where the last iteration of this process stands, to go on from there later.

        That is behind what was received by whoever iterates, whatever was read ahead. With an index
        it is the same on all ranks, and any number of ranks and workers that the lanes allow can go
        on from it, with the same global batch; without one it is of this process. In between two
        iterations it is the beginning of the next epoch.

        Returns
        -------
        dict
            Numbers and texts, less than a kilobyte.
        """
        process_id, _ = self._ledger or (None, None)
        if self._state is not None or self._progress is None or process_id != os.getpid():
            return (self._state or State(epoch=self._epoch)).as_dict()
        return self._progress.state().as_dict()

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Let the next iteration go on where ``state`` says.

        Whether the state is of the same data and order is looked at when iteration starts.

        Parameters
        ----------
        state
            What :meth:`state_dict` gave.

        Raises
        ------
        InvalidInputError
            Where it is damaged; and from the iteration, where data, shuffle, seed or batch are
            others than they were, with the difference.
        """
        self._state = self._order = State.of(state)
        self._begun = None
        self._loaded_in = os.getpid()
        self._epoch = self._state.epoch
        self._is_epoch_set = True

    @property
    def ledger(self) -> Ledger:
        """What happened in the iteration that runs, or ran last, in this process, until now.

        Workers of a ``DataLoader`` are processes of their own: what they read stands in ledgers
        that live and end with them, and never here. Iterations of this process do not know of
        theirs, so after a ``DataLoader`` with workers this is still the ledger of the last
        iteration here. To get one of all data, take ``num_workers=0``, or iterate the loader
        itself.

        Raises
        ------
        InvalidInputError
            Where nothing has been iterated in this process yet.
        """
        process_id, ledger = self._ledger or (None, None)
        if ledger is None or process_id != os.getpid():
            raise told(
                InvalidInputError,
                "read the ledger of",
                self._urls_shown(),
                "nothing has been iterated in this process yet",
                "iterate the loader first; workers of a DataLoader keep their ledgers to "
                "themselves: for one ledger of all data take num_workers=0, or no DataLoader",
            )
        return Ledger.of(ledger)

    def __iter__(self) -> LoaderIterator:
        self._check_divided_once()
        self._take_back()
        epoch, state = self._epoch, self._state
        if state is not None and _torch.worker() is not None and self._loaded_in != os.getpid():
            raise told(
                InvalidInputError,
                "go on from",
                "a state",
                "it was loaded in another process than that of this worker, which would go on from "
                "it again in each epoch",
                "use torchdata's StatefulDataLoader, or num_workers=0",
            )
        # A state that was written behind the last batch has nothing left of its epoch.
        is_going_on = state is not None and _torch.worker() is None
        iterator = LoaderIterator(self._begin(state), self._begin if is_going_on else None)
        self._state, self._begun = None, (epoch, state)
        return iterator

    def _take_back(self) -> None:
        """Let an iteration that gave nothing not have been: Lightning begins one to see if it can.

        Nor does one that failed before its first batch cost an epoch or a state.
        """
        process_id, _ = self._ledger or (None, None)
        if self._begun is None or self._progress is None or process_id != os.getpid():
            return
        if self._progress.given == 0 and not self._progress.is_over:
            self._epoch, self._state = self._begun

    def _check_divided_once(self) -> None:
        """Raise where each rank would get a part of its part."""
        if _torch.is_dealt_out(self) and (count := self._chain.ranks.found().count) > 1:
            raise told(
                InvalidInputError,
                "load from",
                self._urls_shown(),
                "accelerator.prepare() was given a DataLoader of it and divides it among the ranks "
                f"once more, so that only one of {count} samples would come",
                "iterate the loader itself and leave it out of prepare(); "
                "accelerator.register_for_checkpointing(loader) keeps its place",
            )

    def plan(self) -> Plan:
        """Say what the next iteration of this process would be, before the first byte of the data.

        It looks up what is there, as an iteration does, and reads the index where there is one.

        Returns
        -------
        Plan
            Steps, coverage, memory and requests.

        Raises
        ------
        InvalidInputError
            Where data, ranks and batches do not go together, with what to do.
        """
        chain = self._chain_of(self._epoch, self._state)
        settings, _ = chain.divided()
        return plan.of(*_onecopy.plan(settings), settings.steps_per_epoch)

    def _chain_of(self, epoch: int, state: State | None) -> Chain:
        """Return what is read in the epoch, by this process, from ``state`` on."""
        ranks = self._chain.ranks.found()
        found = _torch.worker()
        worker = found or _torch.Worker(index=0, count=1, base_seed=0)
        if not self._is_epoch_set:
            is_drawn = self._chain.settings.shuffle or self._chain.settings.sources
            if found and ranks.processes > 1 and is_drawn:
                raise told(
                    InvalidInputError,
                    "draw the order of",
                    self._urls_shown(),
                    "workers of a DataLoader do not know which epoch it is, so that each rank "
                    "would draw an order of its own, and samples would be lost",
                    "call set_epoch() with the same number on all ranks before each epoch, or take "
                    "num_workers=0",
                )
            epoch += worker.base_seed
        settings = replace(
            self._chain.settings,
            epoch=epoch % 2**64,
            part=(ranks.rank, ranks.count, worker.index, worker.count),
        )
        kept = state or self._order
        if kept is not None and kept.batch is not None:
            settings = replace(
                settings, lanes=kept.lanes, lane_groups=kept.groups, window=kept.window
            )
        if state is not None and state.position is not None:
            settings = replace(settings, position=state.position, steps_made=state.made or 0)
        return replace(self._chain, settings=settings)

    def _begin(self, state: State | None = None) -> Pass:
        """Begin the next epoch, or go on with that of ``state``."""
        chain = self._chain_of(self._epoch, state)
        settings, _ = chain.divided()
        load = _onecopy.Load(settings)
        progress = Progress.of(load, settings)
        if state is not None:
            state.check(progress)
        self._epoch += 1
        self._progress = progress
        self._ledger = (os.getpid(), load.ledger)
        return Pass(chain, load, progress)

    def __repr__(self) -> str:
        settings = self._chain.settings
        asked = shown(settings)
        if settings.is_decoding or settings.decoders:
            asked += ".decode(..)"
        for step in self._chain.steps:
            if isinstance(step, Map):
                asked += f".map({getattr(step.function, '__qualname__', step.function)})"
            elif isinstance(step, Select):
                asked += f".to_{step.kind}({', '.join(map(repr, step.names))})"
            else:
                asked += f".batch({step.size}, tail={step.tail!r})"
        return f"<{asked}.to({settings.device!r})>"

    def _with(self, **changes: Any) -> "Loader":
        chain = replace(self._chain, **changes)
        _onecopy.check(chain.settings)
        loader = Loader.of(chain, self._epoch, is_epoch_set=self._is_epoch_set)
        loader._state, loader._order = self._state, self._order  # noqa: SLF001 - its own kind
        loader._loaded_in = self._loaded_in  # noqa: SLF001
        return loader


def _again(
    chain: Chain,
    epoch: int,
    is_epoch_set: bool,  # noqa: FBT001 - for pickle
    state: State | None,
    order: State | None,
) -> Loader:
    loader = Loader.of(chain, epoch, is_epoch_set=is_epoch_set)
    loader._state, loader._order = state, order  # noqa: SLF001 - as it was
    return loader
