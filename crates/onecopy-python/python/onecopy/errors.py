"""What can go wrong: one class per kind, all below :class:`Error`, most also below a builtin."""

from typing import ClassVar


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
    """

    kind: ClassVar[str] = "error"
    """The kind's stable name, as in the ledger's counts by cause."""

    doing: str
    target: str
    why: str
    help: str | None

    def __init__(
        self,
        message: str = "",
        *,
        doing: str = "",
        target: str = "",
        why: str = "",
        help: str | None = None,  # noqa: A002 - the word of the engine's errors
    ) -> None:
        super().__init__(message)
        self.doing = doing
        self.target = target
        self.why = why
        self.help = help


class NotFoundError(Error, FileNotFoundError):
    """The object, bucket, file or field does not exist."""

    kind = "not_found"


class DeniedError(Error, PermissionError):
    """Credentials are missing, wrong, expired, or not allowed to do this."""

    kind = "denied"


class UnreachableError(Error, ConnectionError):
    """The other side cannot be reached, or stays silent."""

    kind = "unreachable"


class ThrottledError(Error):
    """The other side asks for less."""

    kind = "throttled"


class ChangedError(Error):
    """The object is no longer the one whose reading began."""

    kind = "changed"


class CorruptError(Error, ValueError):
    """The bytes are there but are not what they claim to be."""

    kind = "corrupt"


class TruncatedError(Error):
    """Fewer bytes arrived than were promised."""

    kind = "truncated"


class UnsupportedError(Error, NotImplementedError):
    """Understood, but not something this version or this machine does."""

    kind = "unsupported"


class LimitReachedError(Error):
    """A limit set by the configuration or the machine was reached."""

    kind = "limit_reached"


class InvalidInputError(Error, ValueError):
    """What was asked for cannot be."""

    kind = "invalid_input"


class InvalidTypeError(InvalidInputError, TypeError):
    """An option was given a value of a type that it does not take."""


class DeviceError(Error, RuntimeError):
    """A device or its driver failed."""

    kind = "device"


class IoError(Error, OSError):
    """A local file or the operating system failed."""

    kind = "io"


class CancelledError(Error):
    """The work was stopped on request."""

    kind = "cancelled"


class BugError(Error, AssertionError):
    """An assumption of onecopy's own does not hold; please report it."""

    kind = "bug"


_BY_KIND: dict[str, type[Error]] = {
    error.kind: error
    for error in (
        NotFoundError,
        DeniedError,
        UnreachableError,
        ThrottledError,
        ChangedError,
        CorruptError,
        TruncatedError,
        UnsupportedError,
        LimitReachedError,
        InvalidInputError,
        DeviceError,
        IoError,
        CancelledError,
        BugError,
    )
}


def from_engine(  # noqa: PLR0913, PLR0917 - the parts of an engine error, in its order
    kind: str,
    message: str,
    doing: str,
    target: str,
    why: str,
    help: str | None,  # noqa: A002 - the word of the engine's errors
) -> Error:
    """Return the exception for an error of the engine; an unknown kind is a plain Error."""
    error = _BY_KIND.get(kind, Error)
    return error(message, doing=doing, target=target, why=why, help=help)


def told(
    error: type[Error],
    doing: str,
    target: str,
    why: str,
    help: str | None = None,  # noqa: A002 - the word of the engine's errors
) -> Error:
    """Return an exception with its text made up as the engine makes up its own."""
    message = f"could not {doing} {target}: {why}" if target else f"could not {doing}: {why}"
    if help is not None:
        message += f"\nhelp: {help}"
    return error(message, doing=doing, target=target, why=why, help=help)
