"""What `make bench` measures: one file for each question.

Each has TITLE, LIMIT (the claim in words) and `measure(runs)`, which yields one row for each single
run as it ends (they go to raw.jsonl as they are), and `judge(rows)`, which makes the figure of them
and says whether the claim holds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """The figure of a scenario."""

    figure: str
    holds: bool
    table: list[str]  # lines of Markdown
