"""Which samples are loaded, and samples one by one: what an index makes possible."""

import os
from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import index as index_of
from typing import TYPE_CHECKING, Any, overload

from onecopy import _onecopy, _options
from onecopy._chain import Chain
from onecopy._refining import Refining
from onecopy._settings import Drawn, Slice, Those
from onecopy._state import State
from onecopy.errors import Error, InvalidInputError, InvalidTypeError, OutOfRangeError, told
from onecopy.iterator import stream_of

if TYPE_CHECKING:
    from typing_extensions import Self

_FAR = 2**62

_WHOLE = 1 - 1e-9
"""From this sum on, fractions make the whole: sums of tenths are not exact."""


class Access(Refining):
    """Parts of the data, and samples by their number."""

    _epoch: int
    _catalog: tuple[int, _onecopy.Catalog, int] | None = None
    """The process that looked up what is there, what it found, and how many samples that are."""

    def __len__(self) -> int:
        """Return how many batches (samples, before :meth:`batch`) an epoch gives to this rank.

        Reads the index, once, unless ``steps_per_epoch`` tells. Of a mixture it is the length of
        the next epoch: others differ, because what is drawn differs.

        Raises
        ------
        InvalidTypeError
            Where neither tells: as for any object that has no length.
        """
        steps = self._chain.settings.steps_per_epoch
        if steps is not None:
            return steps
        catalog = None
        if not self._chain.settings.sources:
            catalog, _ = self._found("count the samples of", InvalidTypeError)
        elif any(source.index is None for source in self._chain.settings.sources):
            self._check_index("count the samples of", InvalidTypeError)
        order, _ = _onecopy.plan(self._chain_of(self._epoch, None).divided()[0], catalog)
        return order.totals[2]

    def __bool__(self) -> bool:
        """Return True: to look whether there is a sample would be to read the index."""
        return True

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> "Self": ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return one sample, or a loader of some of them.

        Samples are numbered as they stand in the shards, whatever :meth:`shuffle` says; each is
        read by a request of its own. ``loader[i]`` gives what iterating would give for it; an error
        is raised, whatever ``on_error`` says.

        Parameters
        ----------
        at
            The number of a sample; negative ones count from the end. Or a slice with a step from 1,
            which reads nothing yet.

        Raises
        ------
        OutOfRangeError
            Where there is no such sample.
        InvalidInputError
            Where batches are made before, or there is no index.
        """
        if isinstance(at, slice):
            return self._choosing("slice", _slice(at))
        return self.__getitems__([at])[0]

    def __getitems__(self, places: Sequence[int], /) -> list[Any]:
        """Return samples in the order of ``places``: those that lie together are read together.

        torch's ``DataLoader`` asks for them so where a sampler chooses, as in
        ``DataLoader(torch.utils.data.Subset(loader, range(len(loader))), shuffle=True)``.
        """
        self._check_before_batch("[..]")
        if not len(places):  # an array is no bool
            return []
        self._check_unmixed("[..]")
        catalog, count = self._found("give single samples of", InvalidInputError)
        wanted = [_place(at, count) for at in places]
        rising = sorted(set(wanted))
        alone = replace(
            self._chain.settings,
            choices=(*self._chain.settings.choices, Those(_packed(rising))),
            on_error="raise",
            shuffle=None,
            lanes=1,
            steps_per_epoch=None,
            decode_threads=1 if len(rising) == 1 else self._chain.settings.decode_threads,
        )
        chain = replace(self._chain, settings=alone)
        load = _onecopy.Load(chain.divided()[0], catalog)
        try:
            samples = dict(zip(rising, stream_of(chain, load), strict=True))
        finally:
            load.close()
        return [samples[at] for at in wanted]

    def subset(self, places: Iterable[int], /) -> "Self":
        """Load only the samples at these places, each once, in the order of the data.

        Parameters
        ----------
        places
            Numbers of samples from 0, as for ``loader[i]``; a list, a range, an array.

        Raises
        ------
        InvalidInputError
            Where one comes twice; from the iteration, where there are not so many samples.
        """
        rising = sorted(_number(at) for at in places)
        if any(one == next_one for one, next_one in pairwise(rising)):
            why = "a place comes twice"
            raise _options.bad("places", places, why, "give each place once")
        if rising and rising[-1] >= 2**63:
            why = "no data have so many samples"
            raise _options.bad("places", rising[-1], why, "count from 0")
        if rising and rising[0] < 0:
            why = "it counts from the end, which nobody has counted yet"
            raise _options.bad("places", rising[0], why, "use loader[-1000:], or count from 0")
        return self._choosing("subset", Those(_packed(rising)))

    def split(self, *fractions: float, seed: int = 0) -> "tuple[Self, ...]":
        """Divide the data into parts that share no sample: train and validation, say.

        Which samples fall into which part is drawn once, by groups of up to 64 neighbours, so that
        a part of the data takes about as many requests as it has bytes. It is the same in every
        epoch, on every rank and in every run with this seed and these data.

        Parameters
        ----------
        *fractions
            The parts' shares of all samples. What they leave of the whole makes one part more:
            ``train, val = loader.split(0.9)``.
        seed
            What the parts are drawn from.

        Returns
        -------
        tuple of Loader
            One for each part.

        Raises
        ------
        InvalidInputError
            Where a fraction is not between 0 and 1, or all together are more than 1.
        """
        whole = 0.0
        borders = [whole]
        for fraction in fractions:
            if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
                raise _options.bad_type("fractions", fraction, "a number between 0 and 1")
            whole += fraction
            if not 0 < fraction < 1 or whole > 2 - _WHOLE:
                why = "shares are between 0 and 1, and no more than 1 together"
                raise _options.bad("fractions", fractions, why, "use split(0.9)")
            borders.append(whole)
        if not fractions:
            raise _options.bad("fractions", fractions, "there is none", "use split(0.9)")
        if whole >= _WHOLE:
            borders.pop()
        drawn = _options.integer("seed", seed)
        parts = (Drawn(drawn, first, then) for first, then in pairwise((*borders, 1.0)))
        return tuple(self._choosing("split", part) for part in parts)

    def _choosing(self, name: str, choice: Slice | Those | Drawn) -> "Self":
        self._check_before_batch(name)
        self._check_unmixed(f"{name}()")
        self._check_index(f"{name}()", InvalidInputError)
        return self._with_settings(choices=(*self._chain.settings.choices, choice))

    def _check_index(self, doing: str, error: type[Error]) -> None:
        if self._chain.settings.index is None:
            raise told(
                error,
                doing,
                self._urls_shown(),
                "there is no index that tells how many samples the shards have",
                "make one with `onecopy index`, and give it: open(.., index=..)",
            )

    def _found(self, doing: str, error: type[Error]) -> tuple[_onecopy.Catalog, int]:
        """Return what is there, looked up once in each process, and how many samples that are."""
        self._check_index(doing, error)
        process_id, catalog, count = self._catalog or (None, None, 0)
        if catalog is None or process_id != os.getpid():
            catalog = _onecopy.Catalog(self._chain.settings)
            whole = replace(self._chain.settings, lanes=1, shuffle=None, steps_per_epoch=None)
            order, _ = _onecopy.plan(whole, catalog)
            count = order.totals[0]
            self._catalog = (os.getpid(), catalog, count)
        return catalog, count

    @abstractmethod
    def _chain_of(self, epoch: int, state: State | None) -> Chain:
        """Return what this process reads in the epoch, from ``state`` on."""


def _number(at: Any) -> int:
    # Arrays' booleans are masks, which are none of places.
    is_bool = isinstance(at, bool) or "bool" in str(getattr(at, "dtype", ""))
    if is_bool or not hasattr(at, "__index__"):
        raise _options.bad_type("places", at, "numbers of samples")
    return index_of(at)


def _place(at: Any, count: int) -> int:
    """Return the number of a sample of ``count``, counted from the beginning."""
    number = _number(at)
    if not -count <= number < count:
        raise told(
            OutOfRangeError,
            "give sample",
            str(number),
            f"there are {count}",
            "samples are numbered from 0, and from the end by -1 and less",
        )
    return number % count


def _slice(at: slice) -> Slice:
    start, stop, step = (
        None if end is None else _number(end) for end in (at.start, at.stop, at.step)
    )
    if step is not None and step < 1:
        why = "the order of the data is that of the shards"
        raise _options.bad("step", step, why, "use a step from 1; shuffle() changes the order")
    return Slice(_near(start), _near(stop), min(step or 1, _FAR))


def _near(end: int | None) -> int | None:
    """Return an end of a slice as a number of 64 bits: beyond all data is beyond all data."""
    return None if end is None else max(-_FAR, min(_FAR, end))


def _packed(rising: list[int]) -> bytes:
    return array("Q", rising).tobytes()
