"""What a loader was asked for, and which part of it is the engine's."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from onecopy import _steps
from onecopy._options import Library
from onecopy._ranks import Wish
from onecopy._settings import Settings
from onecopy._steps import Collate, Map, Select, Step


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Everything that was asked for, and nothing that runs."""

    settings: Settings
    functions: tuple[tuple[str, Callable[[bytes], Any]], ...] = ()
    """Decoding functions by field."""
    steps: tuple[Step, ...] = ()
    """What follows decoding, in order."""
    library: Library | None = None
    ranks: Wish = field(default_factory=Wish)

    def divided(self) -> tuple[Settings, tuple[Step, ...]]:
        """Return what the engine does and what is left for Python.

        The engine makes batches, unless a function has to see single samples before.
        """
        first_map = next(
            (at for at, step in enumerate(self.steps) if isinstance(step, Map)), len(self.steps)
        )
        settings, left = self.settings, list(self.steps)
        head = self.steps[:first_map]
        selection = next((step for step in head if isinstance(step, Select)), None)
        if selection is not None:
            fields = tuple(name for name in selection.names if not name.startswith("__"))
            settings = replace(settings, fields=fields or None)
        made = next((step for step in self.steps if isinstance(step, Collate)), None)
        if made is not None:
            settings = replace(settings, step=made.size, tail=made.tail)
        batch = next((step for step in head if isinstance(step, Collate)), None)
        if batch is not None and not self.functions:
            left.remove(batch)
            settings = replace(settings, batch_size=batch.size)
        is_stepping = bool(self.functions) or made in left
        return replace(settings, is_stepping=is_stepping), tuple(left)

    def is_array_field(self, name: str) -> bool:
        """Say whether a number in the field ``name`` is an array without axes, and not an int."""
        if "/" in name:
            return True
        own = dict(self.settings.decoders)
        for part in _steps.parts(name):
            if part in own:
                return own[part].kind == "npy"
        return any(part == "npy" for part in _steps.parts(name))
