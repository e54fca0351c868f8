"""The copy counter gives the known answer: what it says of others is worth as much as this."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import measuring

SLACK = 4096  # start-up of libc, and the program's own answer


@pytest.mark.parametrize("mib", [1, 16])
def test_counts_what_the_program_does(mib: int) -> None:
    """Copies by every function, and bytes through every call, are as the program says."""
    command = [measuring.TOOLS / "copycheck", str(mib)]
    want = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    got = measuring.counted(command)
    assert want["copied"] == 3 * mib * measuring.MIB
    assert got["copied"] == want["copied"]
    for name in ["small", "received", "sent"]:
        assert want[name] <= got[name] <= want[name] + SLACK


def test_adds_up_forked_processes() -> None:
    """A child that is forked starts from zero: its bytes are not counted twice."""
    copy = "a = bytearray(1 << 24); b = bytes(a)"
    script = f"import os; {copy}; p = os.fork()\nif not p: {copy}\nelse: os.wait(); print('{{}}')"
    got = measuring.counted([sys.executable, "-S", "-c", script])
    assert got["copied"] == pytest.approx(2 << 24, rel=0.02)


def test_says_when_nothing_was_counted() -> None:
    """No line from the counter is an error, never a zero."""
    with pytest.raises(RuntimeError, match="wrote nothing"):
        measuring.sums("")
