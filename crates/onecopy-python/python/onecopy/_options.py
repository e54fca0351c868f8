"""The words that options take, and their checks: an error names its option."""

import base64
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, SupportsFloat, TypeAlias, TypeVar, get_args

from onecopy._onecopy import parse_size
from onecopy.errors import Error, InvalidInputError, InvalidTypeError, told

Named: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A URL, or the path of a file."""

Library: TypeAlias = Literal["torch", "numpy", "jax"]
"""Whose tensors a loader gives."""

OnError: TypeAlias = Literal["raise", "warn", "skip"]
"""What to do with a sample that cannot be read, decoded or batched."""

ErrorHandler: TypeAlias = Callable[[Error], OnError]
"""A function that says of each error what to do."""

Route: TypeAlias = Literal["stream", "cache", "direct"]
"""A way from object storage to the device."""

RouteWish: TypeAlias = Literal["auto", "stream", "cache", "direct"]
"""A route, or the best that works here."""

AddressingStyle: TypeAlias = Literal["auto", "path", "virtual"]
"""Where in a request the bucket is named."""

KeyRule: TypeAlias = Literal["first-dot", "last-dot"]
"""Which dot of a file name ends the sample's key."""

Duplicates: TypeAlias = Literal["error", "first", "last"]
"""What to do where a sample has the same field twice."""

Tail: TypeAlias = Literal["short", "pad", "drop"]
"""What becomes of samples that do not fill a batch of all ranks."""

Stop: TypeAlias = Literal["first_exhausted", "all_exhausted"]
"""When an epoch of several sources ends."""

Fit: TypeAlias = Literal["crop", "stretch"]
"""How a picture is brought to a size of another shape."""

Pictures: TypeAlias = Literal["rgb", "pil", "raw"]
"""How pictures are decoded."""

FieldDecoder: TypeAlias = Literal["rgb", "pil", "npy", "npz", "cls", "txt", "json", "raw"]
"""How one field is decoded."""

Decode: TypeAlias = FieldDecoder | Callable[[bytes], Any]
"""How one field is decoded: by a word, or by a function of its bytes."""

_T = TypeVar("_T")

_U64_MAX = 2**64 - 1


def bad(option: str, value: object, why: str, hint: str | None = None) -> Error:
    """Return the error for a value that ``option`` cannot have."""
    return told(InvalidInputError, "take the option", f"{option}={value!r}", why, hint)


def bad_type(option: str, value: object, wanted: str) -> Error:
    """Return the error for a value of a type that ``option`` does not take."""
    # Not its value: that may be a signed URL, or a key.
    why = f"it is of type {type(value).__name__}"
    return told(InvalidTypeError, "take the option", option, why, f"give {wanted}")


def integer(option: str, value: object, *, least: int = 0, most: int = _U64_MAX) -> int:
    """Return ``value`` if it is a whole number within the limits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise bad_type(option, value, "a whole number")
    number: int = value.__index__()
    if number < least:
        why = "it is negative" if least == 0 else f"it is less than {least}"
        raise bad(option, value, why, f"give a whole number from {least} on")
    if number > most:
        # No one asks for 2**64 of anything: the number would say nothing.
        why = "it is too large" if most == _U64_MAX else f"it is more than {most}"
        raise bad(option, value, why, f"give a whole number from {least} to {most}")
    return number


def seconds(option: str, value: object) -> float:
    """Return ``value`` if it is a time that can be waited for."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_type(option, value, "a number of seconds")
    if not value > 0:
        raise bad(option, value, "it is no time", "give a number of seconds, or None for no limit")
    return float(value)


def flag(option: str, value: object) -> bool:
    """Return ``value`` if it is a truth value."""
    if not isinstance(value, bool):
        raise bad_type(option, value, "True or False")
    return value


def text(option: str, value: object) -> str:
    """Return ``value`` if it is a string with something in it."""
    if not isinstance(value, str):
        raise bad_type(option, value, "a string")
    if not value:
        raise bad(option, value, "it is empty", "leave it out, or give it a value")
    return encodable(option, value)


def encodable(option: str, value: str) -> str:
    """Return ``value`` if it is text in UTF-8: no halves of characters, no escaped bytes."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        # Not its value: that may be a signed URL, or a key.
        why = f"it is no text in UTF-8 (at character {error.start})"
        hint = "only paths of files may be: give them as they are, or as bytes"
        raise told(InvalidInputError, "take the option", option, why, hint) from None
    return value


def path(option: str, value: object) -> str:
    """Return ``value`` if it is a path."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        value = os.fsdecode(value)
    return text(option, value)


def secret(option: str, value: object) -> str:
    """Return ``value``, text or bytes, as text: bytes in base64. No error shows it."""
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode("ascii")
    if not isinstance(value, str):
        why = f"it is of type {type(value).__name__}"
        raise told(InvalidTypeError, "take the option", option, why, "give a string or bytes")
    if not value:
        hint = "leave it out, or give it a value"
        raise told(InvalidInputError, "take the option", option, "it is empty", hint)
    return encodable(option, value)


def choice(option: str, value: object, words: Any) -> Any:
    """Return ``value`` if it is one of the words of a Literal."""
    known = get_args(words)
    if isinstance(value, str) and value in known:
        return value
    hint = "use " + ", ".join(repr(word) for word in known)
    if not isinstance(value, str):
        raise bad_type(option, value, hint.removeprefix("use "))
    raise bad(option, value, "there is no such choice", hint)


def on_error(option: str, value: object) -> OnError | ErrorHandler:
    """Return ``value`` if it is a policy, or a function to ask."""
    if callable(value):
        handler: ErrorHandler = value
        return handler
    if not isinstance(value, str):
        raise bad_type(option, value, "'raise', 'warn', 'skip' or a function")
    word: OnError = choice(option, value, OnError)
    return word


def optional(check: Callable[[str, object], _T], option: str, value: object) -> _T | None:
    """Return None for None, else what ``check`` returns."""
    return None if value is None else check(option, value)


def positive(option: str, value: object) -> int:
    """Return ``value`` if it is a whole number from 1."""
    return integer(option, value, least=1)


def weights(option: str, values: object, count: int) -> tuple[float, ...]:
    """Return ``values`` if they are ``count`` positive finite numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise bad_type(option, values, "a list of numbers")
    found = tuple(weight(option, value) for value in values)
    if len(found) != count:
        why = f"{len(found)} are given for {count} loaders"
        raise bad(option, found, why, "give one for each")
    return found


def weight(option: str, value: object) -> float:
    """Return ``value`` if it is a positive finite number."""
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, SupportsFloat):
        raise bad_type(option, value, "positive numbers")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        hint = "leave loaders out that are to give nothing"
        raise bad(option, value, "a weight is a positive, finite number", hint)
    return number


def size_bytes(option: str, value: object) -> int:
    """Return ``value``, a number of bytes or text like ``"2GiB"``, in bytes."""
    if not isinstance(value, str):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise bad_type(option, value, 'a size like "2GiB" or a number of bytes')
        return positive(option, value)
    try:
        number = parse_size(encodable(option, value))
    except InvalidInputError as error:
        raise bad(option, value, error.why, error.help) from None
    return positive(option, number)


def picture_size(value: object) -> tuple[int, int] | None:
    """Return the picture size as (height, width)."""
    if value is None:
        return None
    most = 2**16
    if isinstance(value, (tuple, list)):
        if len(value) != 2:  # noqa: PLR2004 - height and width
            raise bad("size", value, "it is not (height, width)")
        height, width = (integer("size", side, least=1, most=most) for side in value)
        return height, width
    side = integer("size", value, least=1, most=most)
    return side, side


def urls(value: object) -> tuple[str, ...]:
    """Return the URLs as strings."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return (url(value),)
    if isinstance(value, (bytearray, memoryview)) or not isinstance(value, Iterable):
        raise bad_type("urls", value, "a URL, a path, or a list of them")
    found = tuple(url(one) for one in value)
    if not found:
        raise bad("urls", value, "there is none", "give at least one URL")
    return found


def url(value: object) -> str:
    """Return a URL, or the path of a file, which need not be text in UTF-8."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        if b"://" in value and not value.startswith(b"file://"):
            raise bad_type("urls", value, "a URL as str: only paths of files may be bytes")
        value = os.fsdecode(value)
    if not isinstance(value, str):
        raise bad_type("urls", value, "a URL, or the path of a file as str, bytes or os.PathLike")
    if not value:
        raise bad("urls", value, "it is empty", "name the data: s3://bucket/train/, or a path")
    scheme, mark, rest = value.partition("://")
    if mark and scheme != "file":
        return encodable("urls", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        return _escaped(rest if mark else value)
    return value


def _escaped(name: str) -> str:
    """Return the URL of a file whose name is no text in UTF-8. A pattern in the name stays one."""
    try:
        at = os.fsencode(name)
    except UnicodeEncodeError:
        # Half a character that stands for no byte.
        return encodable("urls", name)
    if not at.startswith(b"/"):
        # The folder is meant as it is, and so is a name that a file bears.
        behind = _literal(at) if pathlib.Path(name).exists() else at
        at = _literal(bytes(pathlib.Path.cwd())) + b"/" + behind
    # Bytes beyond ASCII, and the sign that begins an escape.
    shown = (f"%{one:02X}" if one >= 0x80 or one == ord("%") else chr(one) for one in at)  # noqa: PLR2004
    return "file+escaped://" + "".join(shown)


def _literal(at: bytes) -> bytes:
    """Return ``at`` with a backslash before whatever makes a pattern of it."""
    return re.sub(rb"[*?[\]{},\\]", rb"\\\g<0>", at)


def names(option: str, values: tuple[object, ...]) -> tuple[str, ...]:
    """Return field names."""
    return tuple(text(option, value) for value in values)


def library(option: str, value: object) -> Library:
    """Return ``value`` if it is the name of a library."""
    name: Library = choice(option, value, Library)
    return name
