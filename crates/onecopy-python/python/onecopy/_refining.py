"""The steps that refine what is loaded: each gives a new loader."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onecopy import _options, _steps
from onecopy._chain import Chain
from onecopy._options import Decode, Fit, Library, Pictures, Tail
from onecopy._settings import Decoding, Settings
from onecopy._steps import Collate, Map, Select
from onecopy.errors import InvalidInputError, told

if TYPE_CHECKING:
    from typing_extensions import Self


_URLS_SHOWN = 3
"""URLs in a ``repr``; lists of shards have thousands."""


class Refining(ABC):
    """What all steps of a loader have in common."""

    _chain: Chain

    @abstractmethod
    def _with(self, **changes: Any) -> "Self":
        """Return one of the same kind whose chain has ``changes``."""

    def shuffle(self, capacity: int, *, seed: int = 0) -> "Self":
        """Shuffle samples within windows, and read shards in an order of their own.

        Each lane reads its share of ``capacity``, samples that follow each other, and gives them in
        an order that is drawn for this window.

        Parameters
        ----------
        capacity
            Samples of the windows of all lanes together: so many are held, and one of so many comes
            next. 0 and 1 keep the order.
        seed
            What the order is drawn from, together with the epoch.

        Raises
        ------
        InvalidInputError
            Where a number is negative, or batches are made before.
        """
        self._check_before_batch("shuffle")
        self._check_unmixed("shuffle()")
        wish = (_options.integer("capacity", capacity), _options.integer("seed", seed))
        return self._with_settings(shuffle=wish)

    def decode(
        self,
        pictures: Pictures | None = None,
        /,
        *,
        size: int | tuple[int, int] | None = None,
        fit: Fit = "crop",
        **fields: Decode,
    ) -> "Self":
        """Decode fields: all by their names, or those that are given.

        By their names: npy to arrays, npz to dicts of arrays, cls to ``int``, txt to ``str``, json
        to objects, pictures as asked for; others stay ``bytes``. JSON is what ``json.loads`` reads,
        up to 900 levels deep, with whole numbers of up to 4300 digits.

        Parameters
        ----------
        pictures
            ``"rgb"``: uint8 tensors [3, H, W] over memory in the order H, W, 3 (channels last), by
            threads of the engine. ``"pil"``: ``PIL.Image`` in RGB, in Python, one at a time.
            ``"raw"``: ``bytes``. None decodes only the fields that are given; where none are, it
            is as ``"raw"``.
        size
            Pictures' height and width in pixels, or one number for both, for ``"rgb"``; None
            leaves them as they are.
        fit
            How a picture of another shape comes to ``size``: ``"crop"`` fills it and cuts off what
            sticks out, ``"stretch"`` does not keep the picture's shape.
        **fields
            By field (``jpg=``, or ``**{"left.jpg": ..}``; ``jpg`` is for ``left.jpg``, too):
            ``"rgb"``, ``"pil"``, ``"npy"``, ``"npz"``, ``"cls"``, ``"txt"``, ``"json"``,
            ``"raw"``, or a function of the field's ``bytes``. Functions run in Python; batches are
            then made in Python, too, at the cost of a copy.

        Raises
        ------
        InvalidInputError
            Where a word is unknown, or a function or batches come before.
        """
        self._check_first("decode")
        height_width = _options.picture_size(size)
        _options.choice("fit", fit, Fit)
        if pictures is not None:
            _options.choice("pictures", pictures, Pictures)
        rgb = Decoding(kind="rgb", size=height_width, fit=fit)
        words = [pictures, *fields.values()]
        if height_width is not None and not any(word == "rgb" for word in words):
            raise _options.bad(
                "size", size, "nothing is decoded to rgb", 'use decode("rgb", size=..)'
            )
        functions = dict(self._chain.functions)
        settings = self._chain.settings
        if pictures is not None or not fields:
            settings = replace(
                settings, is_decoding=True, pictures=rgb if pictures == "rgb" else None
            )
            for name in _steps.PICTURES:
                functions.pop(name, None)
                if pictures == "pil":
                    functions[name] = _steps.pil
        decoders = dict(settings.decoders)
        for name, how in fields.items():
            functions.pop(name, None)
            if how == "pil":
                functions[name] = _steps.pil
            elif callable(how):
                functions[name] = how
            elif how != "rgb":
                _options.choice(name, how, _options.FieldDecoder)
            is_python = name in functions
            kind = "raw" if is_python else str(how)
            decoders[name] = rgb if kind == "rgb" else Decoding(kind=kind)
        settings = replace(settings, decoders=tuple(decoders.items()))
        return self._with(settings=settings, functions=tuple(functions.items()))

    def map(self, function: Callable[[Any], Any], /) -> "Self":
        """Call a function on each sample, or on each batch after :meth:`batch`.

        Parameters
        ----------
        function
            Takes what the loader gives so far and returns what to give instead. Its exceptions
            end the iteration, whatever ``on_error`` says. Before :meth:`batch`, batches are made
            in Python, at the cost of a copy.
        """
        if not callable(function):
            raise _options.bad_type("function", function, "a function")
        return self._with(steps=(*self._chain.steps, Map(function)))

    def to_tuple(self, *names: str) -> "Self":
        """Give tuples of these fields, and read no others.

        Parameters
        ----------
        *names
            Fields in the order wanted. ``"jpg;png"`` takes the first that a sample has.
            ``"__key__"`` and ``"__shard__"`` are fields, too.
        """
        if not names:
            raise _options.bad("names", names, "there is none", 'use to_tuple("jpg", "cls")')
        return self._selecting(Select("tuple", _options.names("names", names)))

    def to_dict(self, *names: str) -> "Self":
        """Give dicts of these fields, or of all.

        Parameters
        ----------
        *names
            As for :meth:`to_tuple`; none takes all.
        """
        return self._selecting(Select("dict", _options.names("names", names)))

    def batch(self, size: int, *, drop_last: bool = False, tail: Tail | None = None) -> "Self":
        """Put samples together.

        Tensors get a first axis [B, ..], over memory that the engine decoded into and that torch,
        numpy and jax share; ``cls`` becomes an int64 tensor [B]; everything else becomes a list.

        Samples of a batch have the same fields, shapes and dtypes; one that differs is an error,
        and with ``on_error="skip"`` or ``"warn"`` left out and counted. Then it takes two samples
        of one form to begin a batch of another form than the one before, so that the odd one is
        left out and not those behind it; where data change their form for good in the midst of a
        batch, the rest of that batch is left out.

        Parameters
        ----------
        size
            Samples per batch of one rank, from 1. All ranks together make a global batch.
        drop_last
            The same as ``tail="drop"``.
        tail
            What becomes of the last samples of an epoch where they do not fill a global batch:
            ``"short"`` makes the last one as short as it has to be, ``"drop"`` leaves it out,
            ``"pad"`` (with an index) fills it up with the first samples of the epoch. None is
            ``"short"``. With an index every rank makes the same number of steps in any case.

        Raises
        ------
        InvalidInputError
            Where batches are made already.
        """
        self._check_before_batch("batch")
        is_dropping = _options.flag("drop_last", drop_last)
        if tail is None:
            tail = "drop" if is_dropping else "short"
        _options.choice("tail", tail, Tail)
        if is_dropping and tail != "drop":
            why = "drop_last=True says something else"
            raise _options.bad("tail", tail, why, "leave one of them out")
        step = Collate(_options.positive("size", size), tail)
        return self._with(steps=(*self._chain.steps, step))

    def to(self, device: str, /, *, as_: Library | None = None) -> "Self":
        """Say where tensors go, and whose tensors they are.

        Parameters
        ----------
        device
            ``"cpu"``: page-locked host memory, where the limits allow.
        as_
            ``"torch"``, ``"numpy"`` or ``"jax"``; None leaves it as it is.

        Raises
        ------
        UnsupportedError
            For a GPU: not in this version.
        """
        settings = replace(self._chain.settings, device=_options.text("device", device))
        library = _options.optional(_options.library, "as_", as_) or self._chain.library
        return self._with(settings=settings, library=library)

    def _with_settings(self, **changes: Any) -> "Self":
        return self._with(settings=replace(self._chain.settings, **changes))

    def _selecting(self, step: Select) -> "Self":
        return self._with(steps=(*self._chain.steps, step))

    def _check_unmixed(self, name: str) -> None:
        if self._chain.settings.sources:
            why = "it is for single loaders, and this is a mixture"
            raise told(InvalidInputError, f"add {name}", "", why, f"use {name} before mix()")

    def _check_before_batch(self, name: str) -> None:
        if any(isinstance(step, Collate) for step in self._chain.steps):
            if name == "batch":
                why = "batches are made already"
                raise told(InvalidInputError, "add batch()", "", why, "leave one of the two out")
            why = "it comes after batch()"
            raise told(InvalidInputError, f"add {name}()", "", why, f"use {name}() before batch()")

    def _check_first(self, name: str) -> None:
        self._check_before_batch(name)
        if any(isinstance(step, Map) for step in self._chain.steps):
            why = "it comes after map()"
            raise told(InvalidInputError, f"add {name}()", "", why, f"use {name}() before map()")

    def _urls_shown(self) -> str:
        return urls_shown(self._chain.settings.urls)


def urls_shown(urls: tuple[str, ...]) -> str:
    """Return URLs as texts show them."""
    # A query may be a signature.
    some = ", ".join(repr(url.partition("?")[0]) for url in urls[:_URLS_SHOWN])
    return some if len(urls) <= _URLS_SHOWN else f"{some}, .. {len(urls)} in all"


def shown(settings: Settings) -> str:
    """Return how a loader was opened, or mixed, and shuffled."""
    if settings.sources:
        sources = ", ".join(shown(source) for source in settings.sources)
        weights = None if settings.weights is None else list(settings.weights)
        how = f"weights={weights}, seed={settings.mix_seed}, stop={settings.stop!r}"
        return f"onecopy.mix([{sources}], {how})"
    opened = f"onecopy.open({urls_shown(settings.urls)})"
    if settings.shuffle is None:
        return opened
    return f"{opened}.shuffle({settings.shuffle[0]}, seed={settings.shuffle[1]})"
