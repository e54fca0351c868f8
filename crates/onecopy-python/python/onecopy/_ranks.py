"""Which part of the data this process reads: looked up when iteration starts, and not before."""

import os
from dataclasses import dataclass

from onecopy import torch as _torch
from onecopy.errors import Error, InvalidInputError, told


@dataclass(frozen=True)
class Ranks:
    """Which of how many ranks: those that read the same data count as one."""

    rank: int
    count: int
    processes: int
    """All of them, those that read the same data each for itself."""


@dataclass(frozen=True)
class Wish:
    """What was said about ranks; None is looked up."""

    rank: int | None = None
    world_size: int | None = None
    replicate: int = 1
    """So many neighbouring ranks read the same data."""

    def found(self) -> Ranks:
        """Return the ranks that were given, or torch.distributed's, or torchrun's, or one."""
        rank, count = self._world()
        if not 0 <= rank < count:
            raise _refused(
                f"there is no rank {rank} of {count}",
                "ranks are counted from 0: give rank= and world_size= together",
            )
        if count % self.replicate:
            raise _refused(
                f"{count} ranks do not fall into groups of {self.replicate}",
                "give replicate= a number that divides the number of ranks",
            )
        return Ranks(rank // self.replicate, count // self.replicate, count)

    def _world(self) -> tuple[int, int]:
        if self.world_size is not None and (self.rank is not None or self.world_size == 1):
            return self.rank or 0, self.world_size
        if self.rank is not None or self.world_size is not None:
            raise _refused(
                f"rank={self.rank} and world_size={self.world_size} are given, which is not enough",
                "give both, or neither: torch.distributed and torchrun tell them",
            )
        return _torch.world() or _from_environment() or (0, 1)


def _from_environment() -> tuple[int, int] | None:
    """Return what torchrun says in the environment, if it does."""
    rank, count = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or count is None:
        return None
    if not (rank + count).isascii() or not (rank.isdecimal() and count.isdecimal()):
        raise _refused(
            f"RANK={rank} and WORLD_SIZE={count} stand in the environment",
            "give rank= and world_size=, or unset both variables",
        )
    return int(rank), int(count)


def _refused(why: str, hint: str) -> Error:
    return told(InvalidInputError, "divide the data among ranks", "", why, hint)
