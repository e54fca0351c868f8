"""Functions that decide about errors: what they may do, and where they are asked."""

import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import pytest

import onecopy
import shards
from stages import STAGES, kept, plain, write

PATIENCE_S = 60
"""How long a subprocess may take at most: nothing is measured, only hanging is told."""


@pytest.mark.parametrize("stage", ["read", "decode", "function"])
def test_a_handler_that_stops_is_an_error_and_no_end(tmp_path, stage):
    loader = STAGES[stage][0](write(tmp_path, stage), on_error=lambda _: next(iter([])))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loader)


@pytest.mark.parametrize("stage", ["read", "decode", "function"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [(None, "NoneType"), (True, "bool"), ("ignore", "ignore"), ("", "it is"), (b"skip", "bytes")],
)
def test_answers_that_are_none_say_which_there_are(tmp_path, stage, answer, why):
    loader = STAGES[stage][0](write(tmp_path, stage), on_error=lambda _: answer)
    with pytest.raises(onecopy.InvalidInputError, match="answer") as caught:
        list(loader)
    assert why in caught.value.why
    assert '"raise", "warn" or "skip"' in caught.value.help


def test_handlers_that_take_something_else_are_told_by_python(tmp_path):
    loader = plain(write(tmp_path, "read"), on_error=lambda: "skip")
    with pytest.raises(TypeError, match="argument"):
        list(loader)


class Training:
    """Holds an iteration, and is asked about its errors."""

    def __init__(self, made, urls):
        self.counted = []
        # An engine thread may find an error before iter() has returned.
        self.is_ready = threading.Event()
        self.loader = made(urls, on_error=self.decide)
        self.iterator = iter(self.loader)
        self.is_ready.set()

    def decide(self, _):
        assert self.is_ready.wait(PATIENCE_S)
        return self.answer()

    def answer(self):
        self.counted.append(self.loader.ledger["skipped"]["samples"])
        gc.collect()
        return "skip"


@pytest.mark.parametrize("stage", ["read", "decode", "function"])
def test_a_handler_may_look_at_the_ledger_and_hold_the_iteration(tmp_path, stage):
    made = STAGES[stage][0]
    url = write(tmp_path, stage)
    training = Training(made, [url] * 3)
    assert len(kept(training.iterator)) == 12
    assert training.counted == [0, 1, 2]
    # Nobody holds it but its own handler, wherever that is asked.
    training = Training(made, [url] * 100)
    next(training.iterator)
    gone = weakref.ref(training)
    del training
    deadline = time.monotonic() + PATIENCE_S
    while gone() is not None and time.monotonic() < deadline:
        gc.collect()
    assert gone() is None


@pytest.mark.parametrize("stage", ["read", "decode", "function"])
def test_a_handler_that_goes_on_with_the_iteration_is_told_and_none_waits(tmp_path, stage):
    class Going(Training):
        def answer(self):
            return next(self.iterator)

    training = Going(STAGES[stage][0], write(tmp_path, stage))
    with pytest.raises(onecopy.InvalidInputError, match="waits for its answer"):
        list(training.iterator)


@pytest.mark.parametrize("stage", ["read", "decode", "function"])
def test_a_handler_may_close_the_iteration(tmp_path, stage):
    class Closing(Training):
        def answer(self):
            self.iterator.close()
            return "skip"

    training = Closing(STAGES[stage][0], [write(tmp_path, stage)] * 50)
    assert len(kept(training.iterator)) < 200
    assert list(training.iterator) == []


def test_a_handler_runs_while_another_thread_closes(tmp_path):
    url = write(tmp_path, "decode")
    entered, release = threading.Event(), threading.Event()

    def handler(_):
        entered.set()
        assert release.wait(PATIENCE_S)
        return "skip"

    iterator = iter(plain([url] * 3, on_error=handler))
    came = []
    consumer = threading.Thread(target=lambda: came.extend(iterator))
    consumer.start()
    assert entered.wait(PATIENCE_S)
    closer = threading.Thread(target=iterator.close)
    closer.start()
    release.set()
    for thread in (consumer, closer):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert list(iterator) == []


@pytest.mark.parametrize("ending", ["break", "sys.exit(0)", "pass", "next(iter(loader)); break"])
def test_python_ends_while_a_handler_is_asked(tmp_path, ending):
    made = {f"{at:04}": {"cls": b"cat" if at % 3 else b"1"} for at in range(500)}
    for at in range(20, 500):
        made[f"{at:04}"]["CLS"] = b"twice"
    url = shards.write(tmp_path / "a.tar", made)
    code = f"""
        import sys, onecopy
        def handler(error):
            return "skip"
        loader = onecopy.open([sys.argv[1]] * 20, as_="numpy", on_error=handler, memory="16MiB")
        iterator = iter(loader.decode())
        for sample in iterator:
            {ending}
        print("done")
    """
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), url],
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def skip_corrupt(error):
    """Skip what is corrupt: by its name, so that a worker that is spawned finds it."""
    return "skip" if isinstance(error, onecopy.CorruptError) else "raise"


def test_loaders_with_handlers_that_have_a_name_can_be_pickled(tmp_path):
    loader = onecopy.open(write(tmp_path, "read"), as_="numpy", on_error=skip_corrupt)
    again = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert [sample["__key__"] for sample in again] == ["0", "1", "3", "4"]
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(onecopy.open("a.tar", as_="numpy", on_error=lambda _: "skip"))


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_handlers_are_asked_in_workers(tmp_path, start):
    data = pytest.importorskip("torch.utils.data")
    urls = [write(tmp_path, stage) for stage in ["read", "decode"]]
    loader = onecopy.open(urls, on_error=skip_corrupt).decode().to_tuple("cls", "npy").batch(3)
    wrapped = data.DataLoader(loader, batch_size=None, num_workers=2, multiprocessing_context=start)
    assert sorted(kept(wrapped)) == [0, 0, 1, 1, 3, 3, 4, 4]
    urls.append(write(tmp_path, "gone"))
    loader = onecopy.open(urls, on_error=skip_corrupt).decode().to_tuple("cls", "npy").batch(3)
    wrapped = data.DataLoader(loader, batch_size=None, num_workers=1, multiprocessing_context=start)
    with pytest.raises(onecopy.NotFoundError, match=Path(urls[-1]).name):
        kept(wrapped)
