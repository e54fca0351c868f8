"""The engine, as the package sees it."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

from typing_extensions import CapsuleType

__all__ = [
    "IS_DEBUG_BUILD",
    "Batch",
    "Catalog",
    "Load",
    "Order",
    "RunningLedger",
    "Spots",
    "Tensor",
    "__version__",
    "check",
    "check_not_asking",
    "drain_log",
    "parse_size",
    "plan",
    "run_command",
]

__version__: str
IS_DEBUG_BUILD: bool

class _Decoding(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> tuple[int, int] | None: ...
    @property
    def fit(self) -> str: ...

class _Settings(Protocol):
    @property
    def urls(self) -> tuple[str, ...]: ...
    @property
    def endpoint_url(self) -> str | None: ...
    @property
    def region(self) -> str | None: ...
    @property
    def profile(self) -> str | None: ...
    @property
    def no_sign_request(self) -> bool: ...
    @property
    def is_requester_paying(self) -> bool: ...
    @property
    def addressing_style(self) -> str | None: ...
    @property
    def sse_c_key(self) -> str | None: ...
    @property
    def no_verify_checksum(self) -> bool: ...
    @property
    def ca_bundle(self) -> str | None: ...
    @property
    def no_verify_ssl(self) -> bool: ...
    @property
    def memory_bytes(self) -> int | None: ...
    @property
    def route(self) -> str: ...
    @property
    def require(self) -> str | None: ...
    @property
    def on_error(self) -> str | Callable[[Any], str]: ...
    @property
    def max_skipped(self) -> int | None: ...
    @property
    def wait_limit(self) -> float | None: ...
    @property
    def connections(self) -> int | None: ...
    @property
    def decode_threads(self) -> int | None: ...
    @property
    def key_rule(self) -> str: ...
    @property
    def duplicates(self) -> str: ...
    @property
    def shuffle(self) -> tuple[int, int] | None: ...
    @property
    def is_decoding(self) -> bool: ...
    @property
    def pictures(self) -> _Decoding | None: ...
    @property
    def decoders(self) -> Sequence[tuple[str, _Decoding]]: ...
    @property
    def fields(self) -> tuple[str, ...] | None: ...
    @property
    def batch_size(self) -> int | None: ...
    @property
    def device(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def part(self) -> tuple[int, int, int, int]: ...
    @property
    def index(self) -> str | None: ...
    @property
    def lanes(self) -> int | None: ...
    @property
    def lane_groups(self) -> int | None: ...
    @property
    def window(self) -> int | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def steps_per_epoch(self) -> int | None: ...
    @property
    def steps_made(self) -> int: ...
    @property
    def is_stepping(self) -> bool: ...
    @property
    def tail(self) -> str | None: ...
    @property
    def position(self) -> str | None: ...
    @property
    def sources(self) -> tuple[_Settings, ...]: ...
    @property
    def weights(self) -> tuple[float, ...] | None: ...
    @property
    def mix_seed(self) -> int: ...
    @property
    def stop(self) -> str: ...
    @property
    def choices(self) -> Sequence[Any]: ...

_Column: TypeAlias = (
    tuple[str, Literal["tensor"], Tensor]
    | tuple[str, Literal["bytes", "json"], list[bytes]]
    | tuple[str, Literal["text"], list[str]]
)

@final
class Load:
    """A load that runs, until :meth:`close` or until nobody holds it.

    Parameters
    ----------
    settings
        What to load and how.
    catalog
        What is there; None looks it up.

    Raises
    ------
    Error
        What URLs, credentials, listing and configuration can meet.
    """

    def __new__(cls, settings: _Settings, catalog: Catalog | None = None) -> Load: ...
    def next(self) -> Batch | None:
        """Wait for the next batch, with the interpreter free for other threads.

        Returns
        -------
        Batch or None
            None at the end, and after an error.

        Raises
        ------
        Error
            What stopped the load.
        KeyboardInterrupt
            Within a tenth of a second of Ctrl-C.
        """

    def close(self) -> None:
        """Stop everything and wait for its threads. Batches that were handed out stay valid.

        In a function of ``on_error`` nothing is waited for: the load stops once it has returned.
        """

    def ask(self, error: Exception) -> Literal["raise", "warn", "skip"]:
        """Return what is to be done about an error that costs a sample.

        Raises
        ------
        InvalidInputError
            Where a function of ``on_error`` gives no such word.
        """

    @property
    def order(self) -> Order:
        """How the epoch is ordered."""

    @property
    def spots(self) -> Spots | None:
        """Where lanes stand behind the last batch; None where samples are counted."""

    @property
    def ledger(self) -> RunningLedger:
        """What happens, as it is counted."""

@final
class Catalog:
    """What is there to load: looked up once, for many loads, which share its connections.

    Parameters
    ----------
    settings
        Of which URLs, with which index.

    Raises
    ------
    Error
        What URLs, credentials, listing, index and configuration can meet.
    """

    def __new__(cls, settings: _Settings) -> Catalog: ...

@final
class Order:
    """What is needed again of an epoch to go on with it, and what is known before it begins."""

    @property
    def lanes(self) -> int:
        """Lanes; of this process alone where samples are not counted."""

    @property
    def groups(self) -> int:
        """Groups of lanes that take turns."""

    @property
    def window(self) -> int:
        """Samples of a lane's window."""

    @property
    def global_batch(self) -> int:
        """Samples of a global batch."""

    @property
    def dataset(self) -> str:
        """The sources, as one number in 16 digits."""

    @property
    def is_counted(self) -> bool:
        """Whether samples are counted. Else the totals are 0."""

    @property
    def steps_here(self) -> int | None:
        """Steps still to be made here, where they were asked for and samples are not counted."""

    @property
    def sources(self) -> list[tuple[int, int]]:
        """Of each source, where there are several: samples in its shards, and samples given."""

    @property
    def odd(self) -> list[tuple[int, int, int]]:
        """Which samples come twice, or not at all: shard, from which on, up to before which."""

    @property
    def totals(self) -> tuple[int, int, int, int, int]:
        """Samples in the shards, samples given, steps, samples that come twice, and not at all."""

@final
class Spots:
    """Where lanes stand behind the batch that was given last. Holds no threads."""

    def receive(self) -> None:
        """Take what was handed over for received."""

    def text(self) -> str:
        """As the text that a state holds."""

@final
class Batch:
    """A collated batch, or one sample."""

    def __len__(self) -> int: ...
    @property
    def is_batched(self) -> bool:
        """Whether tensors have a batch axis; else this is one sample."""

    @property
    def keys(self) -> list[str]:
        """The samples' keys."""

    @property
    def shards(self) -> list[str]:
        """The shards that the samples come from."""

    def columns(self) -> list[_Column]:
        """Return the fields as (name, kind, values).

        Returns
        -------
        list of tuple
            Values are one tensor for the kind ``"tensor"``, else a list with one value per sample.
            Bytes, text and JSON are copied; tensors are not.
        """

@final
class Tensor:
    """A tensor of a batch, in host memory of the engine.

    ``torch.from_dlpack``, ``numpy.from_dlpack`` and ``jax.dlpack.from_dlpack`` share its memory,
    which lives as long as any of their views. It may be written.
    """

    @property
    def dtype(self) -> str:
        """The element type, as numpy calls it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next along each axis."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""

    def __index__(self) -> int: ...
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return ``kDLCPU`` and device 0."""

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a capsule that shares the memory, by the Python array API standard.

        Raises
        ------
        BufferError
            Where another device or a copy is asked for.
        ValueError
            Where a stream is given: host memory has none.
        """

@final
class RunningLedger:
    """The account of a load, running or ended. Holds neither threads nor memory of it."""

    def report(self) -> tuple[str, str]:
        """Return the account as it stands, as JSON and as a map for the eye."""

    def skipped(self, cause: str) -> tuple[str, str] | None:
        """Note a sample that was left out after it was handed over.

        Returns
        -------
        tuple of str or None
            None where it was noted. Where no more may be left out: what was before (no text where
            that is nothing), and what to do.
        """

    def batched(self) -> None:
        """Note a batch that was put together after its samples were handed over."""

    def passes(self) -> int:
        """Return how often the shards were begun for what was handed over so far."""

    def note(self, text: str) -> None:
        """Note a fact about this run, once."""

def check(settings: _Settings) -> None:
    """Raise where the engine does not know a word of ``settings``. Reads nothing."""

def plan(settings: _Settings, catalog: Catalog | None = None) -> tuple[Order, list[int]]:
    """Return what a run would be, before the first byte of the data is read.

    Returns
    -------
    tuple
        How it is ordered; and lanes of this process, bytes, ranges, and bytes of a range, of the
        pool and of batches on their way.
    """

def check_not_asking() -> None:
    """Raise in a function of ``on_error``: the load that asked waits for its answer."""

def parse_size(text: str) -> int:
    """Return the size that ``text`` ("2GiB", "500MB") means, in bytes."""

def run_command(args: Sequence[str | os.PathLike[str]]) -> int:
    """Run the ``onecopy`` command with ``args``, its name first, and return its exit code."""

def drain_log() -> list[str]:
    """Return what the engine's threads had to say since the last call."""
