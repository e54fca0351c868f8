"""What never answers is an error that says what was waited for, and closing ends all the same."""

import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import onecopy
import shards

PATIENCE_S = 60
"""How long threads may take to end: nothing is measured, only hanging is told."""


@contextmanager
def dead_disk(path: Path) -> Iterator[None]:
    """Let nobody open ``path``: the kernel keeps whoever tries until the lease is given back."""
    before = signal.signal(signal.SIGIO, lambda *_: None)
    try:
        with path.open("r+b") as file:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            try:
                yield
            finally:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        signal.signal(signal.SIGIO, before)


def await_no_threads() -> None:
    """Wait until the last thread of the engine is gone."""
    end = time.monotonic() + PATIENCE_S
    while True:
        names = []
        for task in Path("/proc/self/task").iterdir():
            try:
                names.append((task / "comm").read_text().strip())
            except OSError:  # it has just ended
                continue
        left = [name for name in names if name.startswith("onecopy")]
        if not left or time.monotonic() > end:
            assert left == []
            return
        os.sched_yield()


def test_a_disk_that_never_answers_is_named_with_the_bytes(tmp_path):
    path = tmp_path / "a.tar"
    url = shards.small(path, 0, 10)
    with dead_disk(path):
        iterator = iter(onecopy.open(url, wait_limit=0.5, memory="16MiB", as_="numpy"))
        with pytest.raises(onecopy.UnreachableError) as raised:
            next(iterator)
        text = str(raised.value)
        assert f"of {path} (" in text
        assert "waiting for bytes 0.." in text
        assert "wait_limit" in text
        notes = iterator.ledger["notes"]
        assert any("still waited for: bytes 0.." in note for note in notes), notes
    await_no_threads()


def test_an_index_on_a_disk_that_never_answers_is_named_before_anything_is_read(tmp_path):
    url = shards.small(tmp_path / "a.tar", 0, 10)
    index = tmp_path / "index.json"
    index.write_text("{}")
    with dead_disk(index):
        loader = onecopy.open(url, index=index, wait_limit=0.5)
        for begin in (loader.plan, lambda: iter(loader)):
            with pytest.raises(onecopy.UnreachableError, match=f"of {index}"):
                begin()
    await_no_threads()


def test_a_disk_that_answers_late_is_none_that_never_does(tmp_path):
    path = tmp_path / "a.tar"
    url = shards.small(path, 0, 10)
    with dead_disk(path):
        iterator = iter(onecopy.open(url, wait_limit=None, memory="16MiB", as_="numpy"))
        waiting = threading.Thread(target=lambda: came.extend(iterator))
        came: list[object] = []
        waiting.start()
    waiting.join(PATIENCE_S)
    assert len(came) == 10
    await_no_threads()


def test_a_function_that_never_returns_is_named_and_closing_goes_on_without_it(tmp_path):
    good = shards.small(tmp_path / "good.tar", 0, 4)
    missing = f"file://{tmp_path}/missing.tar"
    is_over = threading.Event()

    def ask(_: onecopy.Error) -> onecopy.OnError:
        is_over.wait(PATIENCE_S)
        return "skip"

    loader = onecopy.open([missing, good], on_error=ask, wait_limit=0.5, as_="numpy").decode()
    iterator = iter(loader)
    with pytest.raises(onecopy.LimitReachedError) as raised:
        next(iterator)
    text = str(raised.value)
    assert "waiting for the answer of the function of on_error about this: could not" in text
    assert "missing.tar" in text
    assert any("left behind: onecopy-sample" in note for note in iterator.ledger["notes"])
    is_over.set()
    await_no_threads()


def test_closing_goes_on_without_a_thread_that_is_in_a_function(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"cls": b"cat"}})
    is_asked, is_over = threading.Event(), threading.Event()

    def ask(_: onecopy.Error) -> onecopy.OnError:
        is_asked.set()
        is_over.wait(PATIENCE_S)
        return "skip"

    iterator = iter(onecopy.open(url, on_error=ask, as_="numpy").decode())
    came: list[object] = []
    taking = threading.Thread(target=lambda: came.extend(iterator))
    taking.start()
    assert is_asked.wait(PATIENCE_S)
    iterator.close()
    assert any("another thread took from it" in note for note in iterator.ledger["notes"])
    is_over.set()
    taking.join(PATIENCE_S)
    assert came == []
    await_no_threads()


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan")])
def test_a_limit_is_a_time(wrong):
    with pytest.raises(onecopy.InvalidInputError, match="wait_limit"):
        onecopy.open("a.tar", wait_limit=wrong)


def test_a_limit_is_a_number():
    for wrong in ("5", True):
        with pytest.raises(onecopy.InvalidTypeError, match="number of seconds"):
            onecopy.open("a.tar", wait_limit=wrong)  # type: ignore[arg-type]
    assert onecopy.open("a.tar", wait_limit=float("inf"))
    assert onecopy.open("a.tar", wait_limit=None)
