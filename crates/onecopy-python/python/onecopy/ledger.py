"""What happened to every byte of an iteration."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from onecopy._onecopy import RunningLedger


class Ledger(Mapping[str, Any]):
    """A ledger as it stood when ``loader.ledger`` was read.

    A mapping in the one JSON form of onecopy (``"schema": 1``); as text, a map of the path with a
    line for each hop. It counts what one process did: workers of a ``DataLoader`` each have their
    own, which ends with them. ``samples`` are those that the engine handed to this process, and
    ``batches`` those that were made of them, by the engine or by :meth:`Loader.batch` behind a
    function; iterating single samples makes none.

    Examples
    --------
    >>> loader.ledger["copies_per_byte"]  # doctest: +SKIP
    {'cpu': 1.0, 'user': 0.0, 'dma': 0.0}
    """

    def __init__(self, as_json: str, as_text: str) -> None:
        self._json = as_json
        self._text = as_text
        self._values: dict[str, Any] = json.loads(as_json)

    @classmethod
    def of(cls, running: RunningLedger) -> "Ledger":
        """Return the account as it stands."""
        return cls(*running.report())

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy as plain dicts, lists and numbers.

        Returns
        -------
        dict
            The JSON form, parsed.
        """
        values: dict[str, Any] = json.loads(self._json)
        return values

    def to_json(self) -> str:
        """Return the JSON form, on one line.

        Returns
        -------
        str
            One object with ``"schema": 1``.
        """
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Ledger({self._json})"
