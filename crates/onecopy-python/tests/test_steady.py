"""A loop that is left a thousand times, and a hundred epochs, cost no more than one: nothing stays.

What is meant by flat, from behind a warm-up to the end: as many threads, as many open files, as
much locked memory; and of memory no more than ``GROWTH_BYTES`` more.
"""

import gc
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import onecopy
import shards

TESTKIT = Path(__file__).parents[3] / "target/release/onecopy-testkit"

BREAKS = 1000

WARM_UP = 100
"""Loops after which whatever is kept for reuse is there: arenas of malloc, code, caches."""

LANES = 8
"""Each costs a request at least, which is no matter of what stays."""

GROWTH_BYTES = 2 << 20
"""Two KiB for each of a thousand loops; measured were 0.3. A stack, a slab or a batch is more."""

PATIENCE_S = 60
"""How long it may take until the last thread is gone. Nothing is measured, only hanging is told."""


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    threads: int
    files: int
    locked_kib: int
    rss_bytes: int

    @classmethod
    def now(cls) -> "Held":
        """Look."""
        status = dict(
            line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
        )
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            threads=len(list(Path("/proc/self/task").iterdir())),
            files=len(list(Path("/proc/self/fd").iterdir())),
            locked_kib=int(status["VmLck"].split()[0]),
            rss_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        )

    def is_as(self, before: "Held") -> bool:
        """Whether all but memory is as it was."""
        return (self.threads, self.files, self.locked_kib) == (
            before.threads,
            before.files,
            before.locked_kib,
        )


def engine_threads() -> list[str]:
    """Return the names of this process's threads of the engine."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            names.append((task / "comm").read_text().strip())
    return [name for name in names if name.startswith("onecopy")]


def at_rest() -> Held:
    """Return what is held once the last thread is gone: a joined one may show for a moment."""
    gc.collect()
    end = time.monotonic() + PATIENCE_S
    while engine_threads() and time.monotonic() < end:
        os.sched_yield()
    assert engine_threads() == []
    return Held.now()


def assert_flat(once: Callable[[], None], times: int, warm_up: int = WARM_UP) -> None:
    """Do it that often, and hold what is there afterwards against what was there before."""
    for _ in range(warm_up):
        once()
    before = at_rest()
    for _ in range(times):
        once()
    after = at_rest()
    assert after.is_as(before), (before, after)
    assert after.rss_bytes <= before.rss_bytes + GROWTH_BYTES, (before, after)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards of 100 samples in a bucket ``data``, and their index."""
    root = tmp_path_factory.mktemp("steady")
    bucket = root / "data"
    bucket.mkdir()
    for at in range(4):
        shards.small(bucket / f"{at}.tar", at * 100, 100)
    urls = [str(bucket / f"{at}.tar") for at in range(4)]
    command = [sys.executable, "-W", "ignore", "-m", "onecopy", "index", *urls, "--quiet"]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return bucket


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[str]:
    """Serve them as S3 does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(TESTKIT), "serve", "--root", str(folder.parent), "--port", str(port)]
    command += ["--key", "key", "--secret", "secret"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                with closing(socket.socket()) as attempt:
                    if attempt.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def local(folder: Path, *, is_counted: bool = False) -> onecopy.Loader:
    """Return what is read of the files."""
    urls = [f"file://{folder}/{at}.tar" for at in range(4)]
    index = folder / "index.json" if is_counted else None
    return onecopy.open(
        urls, index=index, lanes=LANES, memory="16MiB", decode_threads=2, as_="numpy"
    ).decode()


@pytest.fixture(params=["shards", "shuffled", "counted"])
def loader(request: pytest.FixtureRequest, folder: Path) -> onecopy.Loader:
    """Batches of files: in order, shuffled, shuffled with an index."""
    made = local(folder, is_counted=request.param == "counted")
    if request.param != "shards":
        made = made.shuffle(50, seed=1)
    return made.to_tuple("cls").batch(8)


def leave(loader: onecopy.Loader) -> None:
    """Leave a loop at its second batch."""
    for at, _ in enumerate(loader):
        if at == 1:
            break


def test_a_thousand_loops_that_are_left_early_leave_nothing(loader):
    assert_flat(lambda: leave(loader), BREAKS)


def test_a_hundred_epochs_leave_nothing(loader):
    def epoch() -> None:
        assert sum(len(labels) for (labels,) in loader) == 400

    assert_flat(epoch, 100, warm_up=20)


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_thousand_loops_over_a_network_leave_nothing(endpoint, monkeypatch, is_shuffled):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    made = onecopy.open(
        "s3://data/{0..3}.tar",
        endpoint_url=endpoint,
        region="us-east-1",
        index="s3://data/index.json" if is_shuffled else None,
        lanes=LANES,
        memory="16MiB",
        decode_threads=2,
        as_="numpy",
    ).decode()
    if is_shuffled:
        made = made.shuffle(50)
    made = made.to_tuple("cls").batch(8)
    assert_flat(lambda: leave(made), BREAKS)


class Told(Exception):  # noqa: N818 - no error of anything
    """What the tests raise."""


def test_exceptions_of_whoever_iterates_leave_nothing(folder):
    made = local(folder).to_tuple("cls").batch(8)

    def loop() -> None:
        with suppress(Told):
            for _ in made:
                raise Told

    assert_flat(loop, 300)


def test_exceptions_of_functions_along_the_way_leave_nothing(folder):
    def fail(_: object) -> object:
        raise Told

    made = local(folder).map(fail).batch(8)

    def loop() -> None:
        with pytest.raises(Told):
            next(iter(made))

    assert_flat(loop, 300)


def test_errors_of_the_engine_and_functions_that_are_asked_leave_nothing(folder, tmp_path):
    good = f"file://{folder}/0.tar"
    bad = shards.write(tmp_path / "bad.tar", {"a": {"cls": b"cat"}})
    asked = []

    def ask(error: onecopy.Error) -> onecopy.OnError:
        asked.append(type(error))
        return "skip" if len(asked) % 2 else "raise"

    made = onecopy.open([bad, bad, good], memory="16MiB", on_error=ask, as_="numpy").decode()

    def loop() -> None:
        asked.clear()
        with pytest.raises(onecopy.CorruptError):
            list(made)

    assert_flat(loop, 300)


def test_iterators_in_cycles_leave_nothing(folder):
    made = local(folder).to_tuple("cls").batch(8)

    class Holder:
        """Holds an iterator, and itself."""

        def __init__(self) -> None:
            self.me = self
            self.iterator = iter(made)
            next(self.iterator)

    turns = itertools.count()

    def loop() -> None:
        Holder()
        # Some at a time, as the garbage collector has them.
        if next(turns) % 10 == 9:
            gc.collect()

    assert_flat(loop, 300)
