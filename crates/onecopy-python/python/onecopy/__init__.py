"""Training data from object storage into device memory, in as few copies as the machine allows.

>>> import onecopy
>>> loader = (
...     onecopy.open("s3://bucket/train-{00000..00999}.tar")
...     .shuffle(10_000, seed=0)
...     .decode("rgb", size=224)
...     .to_tuple("jpg", "cls")
...     .batch(64, drop_last=True)
... )
>>> for images, labels in loader:  # doctest: +SKIP
...     train_step(images, labels)
>>> print(loader.ledger)  # doctest: +SKIP
"""

import warnings as _warnings

from onecopy._mix import mix
from onecopy._onecopy import IS_DEBUG_BUILD as _IS_DEBUG_BUILD
from onecopy._onecopy import Tensor, __version__
from onecopy._open import open  # noqa: A004 - as in PIL.Image.open
from onecopy._options import (
    Decode,
    Duplicates,
    ErrorHandler,
    FieldDecoder,
    Fit,
    KeyRule,
    Library,
    OnError,
    Pictures,
    Route,
    RouteWish,
    Stop,
)
from onecopy.errors import (
    BugError,
    CancelledError,
    ChangedError,
    CorruptError,
    DeniedError,
    DeviceError,
    Error,
    InvalidInputError,
    InvalidTypeError,
    IoError,
    LimitReachedError,
    NotFoundError,
    OutOfRangeError,
    ThrottledError,
    TruncatedError,
    UnreachableError,
    UnsupportedError,
)
from onecopy.iterator import LoaderIterator
from onecopy.ledger import Ledger
from onecopy.loader import Loader

__all__ = [
    "BugError",
    "CancelledError",
    "ChangedError",
    "CorruptError",
    "Decode",
    "DeniedError",
    "DeviceError",
    "Duplicates",
    "Error",
    "ErrorHandler",
    "FieldDecoder",
    "Fit",
    "InvalidInputError",
    "InvalidTypeError",
    "IoError",
    "KeyRule",
    "Ledger",
    "Library",
    "LimitReachedError",
    "Loader",
    "LoaderIterator",
    "NotFoundError",
    "OnError",
    "OutOfRangeError",
    "Pictures",
    "Route",
    "RouteWish",
    "Stop",
    "Tensor",
    "ThrottledError",
    "TruncatedError",
    "UnreachableError",
    "UnsupportedError",
    "__version__",
    "mix",
    "open",
]

if _IS_DEBUG_BUILD:
    _warnings.warn(
        "onecopy is a debug build: it is many times slower, and its ledgers' times mean nothing",
        RuntimeWarning,
        stacklevel=2,
    )
