"""Several loaders as one."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from onecopy import _onecopy, _options
from onecopy._chain import Chain
from onecopy._options import Stop
from onecopy.errors import Error, InvalidInputError, told
from onecopy.loader import Loader

_OF_THE_WHOLE = {
    "memory": "memory_bytes",
    "route": "route",
    "require": "require",
    "on_error": "on_error",
    "max_skipped": "max_skipped",
    "connections": "connections",
    "decode_threads": "decode_threads",
    "wait_limit": "wait_limit",
    "lanes": "lanes",
    "steps_per_epoch": "steps_per_epoch",
    "device": "device",
}
"""Options that are one for all loaders, and what they are called in the settings."""


def mix(
    loaders: Iterable[Loader],
    /,
    *,
    weights: Iterable[float] | None = None,
    seed: int = 0,
    stop: Stop = "first_exhausted",
) -> Loader:
    """Load the samples of several loaders as those of one, drawn by weights.

    Which loader gives a sample is drawn for the sample's place in the order, out of seed and epoch
    alone: the number of ranks, workers and the memory change nothing of it. Samples of each loader
    come in its own order, and batches are made of all of them, within one memory and by one set of
    threads, without another copy. The ledger counts the samples of each.

    Give loaders as :func:`open` made them, with :meth:`Loader.shuffle`, slices, ``subset`` and
    ``split``; whatever else is to be done (``decode``, ``map``, ``to_tuple``, ``batch``) is said
    of the mixture. Where all of them have an ``index=``, all that an index makes possible holds of
    the mixture: ranks, exact resume on other numbers of them, :meth:`Loader.plan`. Where one has
    none, several ranks need ``steps_per_epoch=``.

    Parameters
    ----------
    loaders
        Each with its own data, store, credentials, index, shuffle, ``key_rule`` and
        ``duplicates``. All other options are one for the whole and have to be the same.
    weights
        How often each gives a sample, in proportion: positive numbers that need not add up to
        anything. None is equally often.
    seed
        What the sequence of loaders is drawn from, together with the epoch.
    stop
        When an epoch ends: ``"first_exhausted"``, where a loader is drawn that has no more, so
        that no sample comes twice; or ``"all_exhausted"``, once each was read whole, for which
        those that were before begin again. With ``steps_per_epoch`` an epoch has so many steps.

    Returns
    -------
    Loader
        To be refined by its methods, and iterated.

    Raises
    ------
    InvalidInputError
        Where there is no loader, one does more than to name and shuffle its data, options of the
        whole differ, or a weight is not positive and finite; :class:`InvalidTypeError` where the
        type is wrong.

    Examples
    --------
    >>> web = onecopy.open("s3://b/web/", index="web.json").shuffle(10_000)  # doctest: +SKIP
    >>> books = onecopy.open("s3://b/books/", index="books.json").shuffle(10_000)  # doctest: +SKIP
    >>> loader = onecopy.mix([web, books], weights=[0.7, 0.3]).decode().batch(64)  # doctest: +SKIP
    """
    parts = _parts(loaders)
    if not parts:
        raise _refused("there is none", "give one loader at least")
    first = parts[0]
    for at, part in enumerate(parts):
        _check_alike(first, part, at)
    settings = replace(
        first.settings,
        urls=tuple(url for part in parts for url in part.settings.urls),
        index=None,
        shuffle=None,
        choices=(),
        sources=tuple(part.settings for part in parts),
        weights=None if weights is None else _options.weights("weights", weights, len(parts)),
        mix_seed=_options.integer("seed", seed),
        stop=_options.choice("stop", stop, Stop),
    )
    _onecopy.check(settings)
    return Loader.of(replace(first, settings=settings))


def _parts(loaders: Any) -> list[Chain]:
    """Return what was asked for of each loader."""
    if isinstance(loaders, Loader) or not isinstance(loaders, Iterable):
        raise _options.bad_type("loaders", loaders, "a list of loaders")
    parts = []
    for at, loader in enumerate(loaders):
        if not isinstance(loader, Loader):
            raise _options.bad_type("loaders", loader, "a list of loaders")
        parts.append(_part(loader, at))
    return parts


def _part(loader: Loader, at: int) -> Chain:
    chain = loader._chain  # noqa: SLF001 - its own kind
    is_begun = loader._is_epoch_set or loader._state is not None  # noqa: SLF001
    settings = chain.settings
    if settings.sources:
        hint = "mix all loaders at once, with their weights multiplied"
        raise _refused(f"loader {at} (counted from 0) is a mixture itself", hint)
    if chain.functions or chain.steps or settings.is_decoding or settings.decoders:
        why = f"loader {at} (counted from 0) does more than to name, choose and shuffle its data"
        raise _refused(why, "use decode(), map(), to_tuple() and batch() after mix()")
    if is_begun:
        why = f"loader {at} (counted from 0) was told an epoch or a state"
        raise _refused(why, "use set_epoch() and load_state_dict() after mix()")
    return chain


def _check_alike(first: Chain, other: Chain, at: int) -> None:
    """Raise where an option of the whole is another one in ``other``."""
    found = {
        name: (getattr(first.settings, of), getattr(other.settings, of))
        for name, of in _OF_THE_WHOLE.items()
    }
    for name in ("rank", "world_size", "replicate"):
        found[name] = (getattr(first.ranks, name), getattr(other.ranks, name))
    found["as_"] = (first.library, other.library)
    for name, (one, two) in found.items():
        if one != two:
            raise _refused(
                f"loader {at} (counted from 0) has {name}={two!r}, and the first one {one!r}",
                f"give all loaders the same {name}=: it is one for the whole",
            )


def _refused(why: str, hint: str) -> Error:
    return told(InvalidInputError, "mix", "the loaders", why, hint)
