"""What the engine is asked for: the attributes here are those of ``settings.rs``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How the engine decodes a field."""

    kind: str
    size: tuple[int, int] | None = None
    """Height and width of pictures, in pixels."""
    fit: str = "crop"


@dataclass(frozen=True)
class Slice:
    """Every ``step``-th sample from ``start`` to before ``stop``, as Python's slices say it."""

    start: int | None
    stop: int | None
    step: int


@dataclass(frozen=True)
class Those:
    """The samples at these places."""

    places: bytes = field(repr=False)
    """Rising numbers of 64 bits, as this machine has them in memory."""


@dataclass(frozen=True)
class Drawn:
    """A part of the samples, drawn from ``seed``: those between two fractions of the whole."""

    seed: int
    first: float
    then: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One load. The engine checks the words."""

    urls: tuple[str, ...]
    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    no_sign_request: bool = False
    is_requester_paying: bool = False
    addressing_style: str | None = None
    sse_c_key: str | None = field(default=None, repr=False)
    no_verify_checksum: bool = False
    ca_bundle: str | None = None
    no_verify_ssl: bool = False
    memory_bytes: int | None = None
    route: str = "auto"
    require: str | None = None
    on_error: str | Callable[[Any], str] = "raise"
    """A word, or a function of an exception that gives one."""
    max_skipped: int | None = None
    wait_limit: float | None = 300.0
    """Seconds."""
    connections: int | None = None
    decode_threads: int | None = None
    key_rule: str = "first-dot"
    duplicates: str = "error"
    shuffle: tuple[int, int] | None = None
    """Samples to choose from, and the seed."""
    is_decoding: bool = False
    """Whether fields are decoded by their names."""
    pictures: Decoding | None = None
    decoders: tuple[tuple[str, Decoding], ...] = ()
    """Fields decoded in a way of their own."""
    fields: tuple[str, ...] | None = None
    batch_size: int | None = None
    device: str = "cpu"
    epoch: int = 0
    part: tuple[int, int, int, int] = (0, 1, 0, 1)
    """Which rank of how many, and which of its workers of how many."""
    index: str | None = None
    lanes: int | None = None
    lane_groups: int | None = None
    window: int | None = None
    """Samples of a lane's window, where a state says so."""
    step: int | None = None
    """Samples that a rank takes in a step, where Python makes the batches."""
    steps_per_epoch: int | None = None
    """Steps that each rank makes, whatever there is."""
    steps_made: int = 0
    """How many of them this process has made before, as a state has it."""
    is_stepping: bool = False
    """Whether Python makes batches or leaves samples out: only it knows then when all steps are."""
    tail: str | None = None
    position: str | None = None
    """Where in the epoch to begin, as a state has it."""
    choices: tuple[Slice | Those | Drawn, ...] = ()
    """Which samples are read, each choice among what those before it leave; none are all."""
    sources: tuple["Settings", ...] = ()
    """Where several are mixed: of each what is its own. ``urls`` are then those of all."""
    weights: tuple[float, ...] | None = None
    mix_seed: int = 0
    stop: str = "first_exhausted"
    """When an epoch of several sources ends."""
