"""Add up what the steps of test.sh did, and print it: one line per step, one for all.

A check counts as one. Tests are counted by the closing lines of the runner; where a runner failed
before it printed any, the step counts as one failure.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# cargo nextest: "Summary [   1.2s] 12 tests run: 11 passed (1 slow), 1 failed, 2 skipped"
NEXTEST = re.compile(r"^\s*Summary \[.*?\]\s+\d+.*? tests? run: (.*)$", re.MULTILINE)
# cargo test: "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; ..."
CARGO = re.compile(r"^test result: \w+\. (.*)$", re.MULTILINE)
# pytest: "===== 5 passed, 1 skipped in 0.12s =====", or the same without the bars under -q
PYTEST = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*$", re.MULTILINE)
FAILED = ("failed", "error", "errors", "timed out", "exec failed")
UNTRIED = ("skipped", "ignored", "deselected", "xfailed")


def number(line: str, words: tuple[str, ...]) -> int:
    """Add up the numbers that stand before any of these words."""
    return sum(int(n) for w in words for n in re.findall(rf"\b(\d+) {w}\b", line))


def count(kind: str, status: int, log: str) -> tuple[int, int, int]:
    """Return how many passed, failed and were not tried in one step."""
    if kind == "check":
        return (0, 1, 0) if status else (1, 0, 0)
    text = COLOUR.sub("", log)
    lines = (
        PYTEST.findall(text) if kind == "pytest" else NEXTEST.findall(text) + CARGO.findall(text)
    )
    passed = sum(number(line, ("passed",)) for line in lines)
    failed = sum(number(line, FAILED) for line in lines)
    untried = sum(number(line, UNTRIED) for line in lines)
    if status and not failed:
        failed = 1
    if not status and not lines:
        raise SystemExit(f"error: a step of kind {kind} ended well without its closing line")
    return passed, failed, untried


def main() -> int:
    """Read the table of steps and print the sums; 1 if anything failed."""
    passed = failed = untried = 0
    print("\n=== summary")
    for row in Path(sys.argv[1]).read_text().splitlines():
        kind, status, log, seconds, name = row.split("\t")
        p, f, u = count(kind, int(status), Path(log).read_text(errors="replace"))
        note = f", {u} not tried" if u else ""
        print(f"{p:6} passed {f:4} failed {seconds:>5} s  {name}{note}")
        passed, failed, untried = passed + p, failed + f, untried + u
    if untried:
        print(f"{untried} not tried: they ask for something that is not here, and say what")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
