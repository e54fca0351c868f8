"""What a run will be, before it begins."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SourcePlan:
    """What is known of one source of a mixture."""

    dataset_samples: int
    """Samples in its shards."""
    samples: int
    """Samples of it that all ranks get together."""

    @property
    def times(self) -> float:
        """How often it is read: 1.0 is once, and whole."""
        return self.samples / self.dataset_samples

    def __str__(self) -> str:
        return f"{self.samples} of {self.dataset_samples} samples, so {self.times:.2f} times"


@dataclass(frozen=True)
class Plan:
    """What is known of a run of this process before the first byte of the data is read.

    ``steps`` and what follows it are None where there is no index, but for ``steps`` that were
    asked for.
    """

    global_batch: int
    """Samples of one step, all ranks together."""
    lanes: int
    """Lanes in all; of this process alone without an index."""
    lanes_here: int
    """Lanes that this process reads."""
    window: int
    """Samples of a lane that are shuffled among each other."""
    bytes: int
    """Bytes that this process reads, as far as lengths are known; those of one pass, where shards
    are begun again without an index."""
    requests: int
    """Requests for them at most, but for what is asked for again."""
    memory_bytes: int
    """Memory for everything in flight."""
    steps: int | None = None
    """Steps that every rank makes."""
    samples: int | None = None
    """Samples that all ranks get together."""
    dataset_samples: int | None = None
    """Samples in the shards."""
    padded: int | None = None
    """Samples that come again, beyond once each."""
    dropped: int | None = None
    """Samples that do not come in this epoch."""
    odd: tuple[tuple[int, int, int], ...] = ()
    """Which samples are padded or dropped: shard, from which on, up to before which; from 0. The
    shards of several sources are numbered through."""
    sources: tuple[SourcePlan, ...] = ()
    """Of each source of a mixture, where there is an index of all of them."""

    def __str__(self) -> str:
        coverage = "samples are not counted: make an index to know steps and coverage"
        if self.steps is not None and self.samples is None:
            coverage = (
                f"{self.steps} steps of {self.global_batch} samples; samples are not counted: make "
                "an index to know coverage"
            )
        elif self.steps is not None:
            coverage = (
                f"{self.steps} steps of {self.global_batch} samples; of {self.dataset_samples} "
                f"samples {self.padded} come again and {self.dropped} do not come"
            )
        for at, source in enumerate(self.sources):
            coverage += f"\nsource {at}: {source}"
        return (
            f"{coverage}\n{self.lanes_here} of {self.lanes} lanes here, windows of {self.window} "
            f"samples\n{self.bytes} bytes in at most {self.requests} requests, within "
            f"{self.memory_bytes} bytes of memory"
        )


def of(order: Any, numbers: list[int], asked: int | None) -> Plan:
    """Return what the engine says of a run as a plan. ``asked`` are steps that were asked for."""
    lanes_here, size, ranges, _, pool_bytes, batch_bytes = numbers
    dataset_samples, samples, steps, padded, dropped = (
        order.totals if order.is_counted else (None, None, asked, None, None)
    )
    return Plan(
        global_batch=order.global_batch,
        lanes=order.lanes,
        lanes_here=lanes_here,
        window=order.window,
        bytes=size,
        requests=ranges,
        memory_bytes=pool_bytes + batch_bytes,
        steps=steps,
        samples=samples,
        dataset_samples=dataset_samples,
        padded=padded,
        dropped=dropped,
        odd=tuple(order.odd),
        sources=tuple(SourcePlan(*of) for of in order.sources),
    )
