"""What can go wrong: one class per kind, all below :class:`Error`, most also below a builtin."""

from typing import Any, ClassVar

_BY_KIND: dict[str, type["Error"]] = {}
"""The class of each kind of the engine's errors."""


class Error(Exception):
    """A failure, told for the person who has to do something about it.

    Parameters
    ----------
    message
        The whole text: what was being done, to what, why it failed, what to do.
    doing
        What was being done.
    target
        To what: an object, a field of a sample, an option.
    why
        Why it failed.
    help
        What to do about it, where there is something to say.
    shard
        The shard that it is about, where that is known.
    key
        The key of the sample that it is about, where that is known.
    """

    kind: ClassVar[str] = "error"
    """The kind's stable name, as in the ledger's counts by cause."""

    doing: str
    target: str
    why: str
    help: str | None
    shard: str | None
    key: str | None

    def __init_subclass__(cls, *, kind: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind is not None:
            cls.kind = kind
            _BY_KIND[kind] = cls

    def __init__(  # noqa: PLR0913 - the parts of an engine error
        self,
        message: str = "",
        *,
        doing: str = "",
        target: str = "",
        why: str = "",
        help: str | None = None,  # noqa: A002 - the word of the engine's errors
        shard: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.doing = doing
        self.target = target
        self.why = why
        self.help = help
        self.shard = shard
        self.key = key


class NotFoundError(Error, FileNotFoundError, kind="not_found"):
    """The object, bucket, file or field does not exist."""


class DeniedError(Error, PermissionError, kind="denied"):
    """Credentials are missing, wrong, expired, or not allowed to do this."""


class UnreachableError(Error, ConnectionError, kind="unreachable"):
    """The other side cannot be reached, or stays silent."""


class ThrottledError(Error, kind="throttled"):
    """The other side asks for less."""


class ChangedError(Error, kind="changed"):
    """The object is no longer the one whose reading began."""


class CorruptError(Error, ValueError, kind="corrupt"):
    """The bytes are there but are not what they claim to be."""


class TruncatedError(Error, kind="truncated"):
    """Fewer bytes arrived than were promised."""


class UnsupportedError(Error, NotImplementedError, kind="unsupported"):
    """Understood, but not something this version or this machine does."""


class LimitReachedError(Error, kind="limit_reached"):
    """A limit set by the configuration or the machine was reached."""


class InvalidInputError(Error, ValueError, kind="invalid_input"):
    """What was asked for cannot be."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An option was given a value of a type that it does not take."""


class OutOfRangeError(InvalidInputError, IndexError):
    """There is no sample of that number."""


class DeviceError(Error, RuntimeError, kind="device"):
    """A device or its driver failed."""


class IoError(Error, OSError, kind="io"):
    """A local file or the operating system failed."""


class CancelledError(Error, kind="cancelled"):
    """The work was stopped on request."""


class BugError(Error, AssertionError, kind="bug"):
    """An assumption of onecopy's own does not hold; please report it."""


def from_engine(  # noqa: PLR0913, PLR0917 - the parts of an engine error, in its order
    kind: str,
    message: str,
    doing: str,
    target: str,
    why: str,
    help: str | None,  # noqa: A002 - the word of the engine's errors
    shard: str | None = None,
    key: str | None = None,
) -> Error:
    """Return the exception for an error of the engine; an unknown kind is a plain Error."""
    error = _BY_KIND.get(kind, Error)
    return error(message, doing=doing, target=target, why=why, help=help, shard=shard, key=key)


def told(  # noqa: PLR0913 - the parts of an engine error, in its order
    error: type[Error],
    doing: str,
    target: str,
    why: str,
    help: str | None = None,  # noqa: A002 - the word of the engine's errors
    *,
    shard: str | None = None,
    key: str | None = None,
) -> Error:
    """Return an exception with its text made up as the engine makes up its own."""
    message = f"could not {doing} {target}: {why}" if target else f"could not {doing}: {why}"
    if help is not None:
        message += f"\nhelp: {help}"
    return error(message, doing=doing, target=target, why=why, help=help, shard=shard, key=key)
