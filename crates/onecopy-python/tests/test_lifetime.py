"""Nothing goes on running, and nothing hangs."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import onecopy
import shards

PATIENCE_S = 60
"""How long a subprocess may take at most: nothing is measured, only hanging is told."""


def threads():
    """Return the names of this process's threads of the engine."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:  # it has just ended
            continue
        if name.startswith("onecopy"):
            names.append(name)
    return names


def await_no_threads():
    """Wait until the kernel has seen the last thread off: a joined one may show for a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while threads() and time.monotonic() < deadline:
        os.sched_yield()
    assert threads() == []


@pytest.fixture
def long(tmp_path):
    """So much data that a loop over it is not at its end when it is left."""
    path = tmp_path / "long.tar"
    shards.write(path, {f"{at:05d}": {"npy": shards.npy([at] * 64, (64,))} for at in range(2000)})
    return [f"file://{path}"] * 20


def loader(urls):
    return onecopy.open(urls, memory="16MiB", as_="numpy").decode().to_tuple("npy").batch(8)


def test_leaving_a_loop_early_ends_every_thread(long):
    gc.collect()  # what other tests left in cycles with their tracebacks
    await_no_threads()
    for _ in loader(long):
        assert threads()
        break
    await_no_threads()


def test_an_exception_in_a_loop_ends_every_thread(long):
    def loop():
        for _ in loader(long):
            raise RuntimeError("from the loop")

    with pytest.raises(RuntimeError, match="from the loop"):
        loop()
    gc.collect()
    await_no_threads()


def test_the_end_of_the_data_ends_every_thread_while_the_iterator_lives(url):
    iterator = iter(onecopy.open(url, as_="numpy"))
    assert len(list(iterator)) == 10
    await_no_threads()
    assert list(iterator) == []


def test_an_error_ends_every_thread_while_the_iterator_lives(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"cls": b"cat"}})
    iterator = iter(onecopy.open(url).decode())
    with pytest.raises(onecopy.CorruptError):
        next(iterator)
    await_no_threads()


def test_a_closed_iterator_is_at_its_end(long):
    iterator = iter(loader(long))
    (kept,) = next(iterator)
    iterator.close()
    iterator.close()
    await_no_threads()
    assert list(iterator) == []
    assert kept[3, 5] == 3.0


def test_keeping_the_loader_and_its_ledger_keeps_nothing_running(long):
    kept = loader(long)
    ledger = None
    for _ in kept:
        ledger = kept.ledger
        break
    await_no_threads()
    assert ledger is not None
    assert kept.ledger["batches"] == ledger["batches"] == 1


def test_two_iterations_run_side_by_side(long):
    both = loader(long)
    for (one,), (other,) in zip(both, both, strict=True):
        assert (one == other).all()
        break
    await_no_threads()


def run(code, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_ctrl_c_ends_a_loop(long):
    code = """
        import sys, onecopy
        loader = onecopy.open(sys.argv[1:] * 10000, memory="16MiB", as_="numpy").decode()
        for at, _ in enumerate(loader.batch(8)):
            if at == 3:
                print("running", flush=True)
    """
    process = run(code, *long)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in errors
    assert process.returncode in {-signal.SIGINT, 130}


def test_ctrl_c_ends_a_wait_for_data_that_never_comes(silent_url):
    code = """
        import sys, onecopy
        for _ in onecopy.open(sys.argv[1], as_="numpy"):
            pass
    """
    process = run(code, silent_url.url)
    silent_url.await_request()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in errors
    assert process.returncode in {-signal.SIGINT, 130}


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "import os; os._exit(0)"])
def test_python_ends_while_an_iteration_runs(long, end):
    code = f"""
        import sys, onecopy
        iterator = iter(onecopy.open(sys.argv[1:], memory="16MiB", as_="numpy").decode().batch(8))
        kept = next(iterator)
        {end}
    """
    process = run(code, *long)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")


def test_python_ends_while_another_thread_iterates(long):
    code = """
        import sys, threading, onecopy
        started = threading.Event()
        def loop():
            for _ in onecopy.open(sys.argv[1:] * 1000, memory="16MiB", as_="numpy").batch(8):
                started.set()
        threading.Thread(target=loop, daemon=True).start()
        started.wait()
    """
    process = run(code, *long)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_the_interpreter_is_free_while_a_loop_waits(long):
    import threading

    counted = []
    is_done = threading.Event()

    def count():
        while not is_done.is_set():
            counted.append(1)
            is_done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    for at, _ in enumerate(loader(long)):
        if at > 50 and counted:
            break
    is_done.set()
    thread.join()
    assert counted


def test_a_forked_child_neither_hangs_nor_reads_on(long):
    code = """
        import os, sys, onecopy
        loader = onecopy.open(sys.argv[1:], memory="16MiB", as_="numpy").decode().batch(8)
        iterator = iter(loader)
        kept = next(iterator)
        child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except onecopy.InvalidInputError as error:
                assert "fork" in str(error)
            else:
                os._exit(3)
            del iterator, kept
            own = next(iter(loader))
            assert own["npy"].shape == (8, 64)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        next(iterator)
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    process = run(code, *long)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (7, "")
