"""What becomes of errors: at every stage, by every policy, and no more of them than may be."""

import gc
import logging
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

PATIENCE_S = 60
"""How long a subprocess may take at most: nothing is measured, only hanging is told."""


def odd(data):
    """Decode a field, unless it begins with a 2."""
    if data[:1] == b"2":
        raise KeyError("odd")
    return int(data)


def samples(**odd_one):
    """Return five samples, of which the third has other fields."""
    made = {f"{at}": {"cls": b"%d" % at, "npy": shards.npy([at], (1,))} for at in range(5)}
    made["2"] = {name: data for name, data in {**made["2"], **odd_one}.items() if data is not None}
    return made


def plain(url, **options):
    """Return what the engine batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode()
    return loader.to_tuple("cls", "npy").batch(3)


def by_function(url, **options):
    """Return what a function decodes, and Python batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode().decode(cls=odd)
    return loader.to_tuple("cls", "npy").batch(3)


def by_map(url, **options):
    """Return what a function makes of dicts, and Python batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode()
    return loader.map(lambda sample: sample).batch(3).to_tuple("cls", "npy")


STAGES = {
    "read": (plain, {"CLS": b"2"}, onecopy.CorruptError, "duplicate_field", (1, 0)),
    "pick": (plain, {"cls": None}, onecopy.NotFoundError, "not_found", (1, 0)),
    "lay": (
        plain,
        {"npy": shards.npy([1, 2], (2,))},
        onecopy.InvalidInputError,
        "invalid_input",
        (1, 0),
    ),
    "decode": (plain, {"cls": b"cat"}, onecopy.CorruptError, "corrupt", (1, 0)),
    "function": (by_function, {}, onecopy.CorruptError, "corrupt", (1, 0)),
    "collate": (
        by_map,
        {"npy": shards.npy([1, 2], (2,))},
        onecopy.InvalidInputError,
        "invalid_input",
        (1, 0),
    ),
    "cut": (plain, {}, onecopy.TruncatedError, "truncated", (1, 1)),
    "gone": (plain, {}, onecopy.NotFoundError, "not_found", (0, 1)),
}

stages = pytest.mark.parametrize("stage", STAGES)


def write(tmp_path, stage):
    """Write the shard of a stage, and return its URL."""
    path = tmp_path / f"{stage}.tar"
    url = shards.write(path, samples(**STAGES[stage][1]))
    if stage == "cut":
        # Within the last member's padding: of five samples, the array of the last one is lost.
        path.write_bytes(path.read_bytes()[: 5 * 4 * 512 - 500])
    if stage == "gone":
        path.unlink()
    return url


def kept(batches):
    return [label for labels, _ in batches for label in labels.tolist()]


def expected(stage):
    return {"cut": [0, 1, 2, 3], "gone": []}.get(stage, [0, 1, 3, 4])


@stages
@pytest.mark.parametrize("policy", ["skip", "warn", "ask to skip", "ask to warn"])
def test_every_stage_does_as_the_policy_says_and_counts_once(tmp_path, caplog, stage, policy):
    made, _, error, cause, lost = STAGES[stage]
    asked = []

    def handler(error):
        asked.append(error)
        return policy.removeprefix("ask to ")

    on_error = handler if policy.startswith("ask") else policy
    loader = made(write(tmp_path, stage), on_error=on_error, max_skipped=sum(lost))
    with caplog.at_level(logging.WARNING, logger="onecopy"):
        assert kept(loader) == expected(stage)
    skipped = loader.ledger["skipped"]
    assert (skipped["samples"], skipped["shards"]) == lost
    assert skipped["by_cause"] == {cause: sum(lost)}
    assert skipped["max_skipped"] == sum(lost)
    assert f"of {sum(lost)} that may be ({cause} {sum(lost)})" in str(loader.ledger)
    assert len(caplog.records) == (sum(lost) if policy.endswith("warn") else 0)
    if on_error is handler:
        assert [type(each) for each in asked] == [error] * sum(lost)
        assert all(each.shard.endswith(f"{stage}.tar") for each in asked)
        keys = ["4" if stage == "cut" else "2"][: lost[0]]
        assert [each.key for each in asked] == keys + [None] * lost[1]


@stages
def test_every_stage_raises_where_the_policy_or_the_handler_says_so(tmp_path, stage):
    made, _, error, _, _ = STAGES[stage]
    asked = []

    def handler(error):
        asked.append(error)
        return "raise"

    url = write(tmp_path, stage)
    for on_error in ["raise", handler]:
        loader = made(url, on_error=on_error)
        with pytest.raises(error) as caught:
            list(loader)
        assert type(caught.value) is error
        if (stage, on_error) == ("gone", "raise"):
            continue  # known before the iteration begins
        assert stage in caught.value.shard
        assert loader.ledger["skipped"] == {"samples": 0, "shards": 0, "by_cause": {}}
    assert len(asked) == 1


@stages
def test_what_a_handler_raises_ends_the_iteration_as_it_is(tmp_path, stage):
    made = STAGES[stage][0]
    raised = LookupError("of the handler")

    def handler(_):
        raise raised

    iterator = iter(made(write(tmp_path, stage), on_error=handler))
    with pytest.raises(LookupError) as caught:
        list(iterator)
    assert caught.value is raised
    assert list(iterator) == []
    assert iterator.ledger["skipped"]["by_cause"] == {}


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


@pytest.fixture
def all_stages(tmp_path):
    """Shards in which something goes wrong at each stage of the engine: seven times together."""
    urls = [write(tmp_path, stage) for stage in ["read", "pick", "lay", "decode", "cut", "gone"]]
    return [*urls, shards.write(tmp_path / "whole.tar", samples())]


@pytest.mark.parametrize("on_error", ["skip", "warn", lambda _: "skip"])
def test_a_budget_is_spent_by_all_stages_together(all_stages, on_error):
    loader = plain(all_stages, on_error=on_error, max_skipped=7)
    assert len(kept(loader)) == 4 * 5 + 5
    assert loader.ledger["skipped"]["by_cause"] == {
        "corrupt": 1,
        "duplicate_field": 1,
        "invalid_input": 1,
        "not_found": 2,
        "truncated": 2,
    }
    for budget in range(1, 7):
        loader = plain(all_stages, on_error=on_error, max_skipped=budget)
        with pytest.raises(onecopy.Error, match="left out before it: ") as caught:
            list(loader)
        skipped = loader.ledger["skipped"]
        assert skipped["samples"] + skipped["shards"] == budget
        told = ", ".join(f"{cause} {count}" for cause, count in skipped["by_cause"].items())
        assert f"({told})" in caught.value.why
        assert caught.value.help.startswith(f"max_skipped={budget} is spent: ")
        assert 'on_error="warn"' in caught.value.help


@stages
def test_with_a_budget_of_none_at_all_skip_is_as_raise(tmp_path, stage):
    made = STAGES[stage][0]
    url = write(tmp_path, stage)
    texts = []
    for options in [{}, {"on_error": "skip", "max_skipped": 0}]:
        with pytest.raises(STAGES[stage][2]) as caught:
            list(made(url, **options))
        texts.append((str(caught.value), type(caught.value.__cause__)))
    if stage != "cut":  # where the sample is told of, and not its shard
        assert texts[0] == texts[1]
    assert "left out" not in texts[1][0].partition("help:")[0]


def test_functions_spend_the_budget_of_the_engine(tmp_path):
    made = {f"{at:02}": {"cls": b"2" if at % 2 else b"1", "npy": b"no array"} for at in range(10)}
    for at in range(0, 10, 4):
        made[f"{at:02}"] |= {"npy": shards.npy([at], (1,))}
        made[f"{at + 1:02}"] |= {"npy": shards.npy([at], (1,))}
    url = shards.write(tmp_path / "a.tar", made)
    loader = by_function(url, on_error="skip", max_skipped=7)
    assert kept(loader) == [1, 1, 1]
    assert loader.ledger["skipped"]["by_cause"] == {"corrupt": 7}
    loader = by_function(url, on_error="skip", max_skipped=6)
    with pytest.raises(onecopy.CorruptError, match="left out before it: 6 samples"):
        list(loader)
    assert loader.ledger["skipped"]["samples"] == 6


def test_a_spent_budget_keeps_the_cause_of_a_function(tmp_path):
    url = shards.write(tmp_path / "a.tar", {f"{at}": {"cls": b"2"} for at in range(3)})
    loader = onecopy.open(url, as_="numpy", on_error="skip", max_skipped=1).decode(cls=odd)
    with pytest.raises(onecopy.CorruptError, match=r"before it: 1 samples \(corrupt 1\)") as caught:
        list(loader)
    assert (caught.value.key, caught.value.kind) == ("1", "corrupt")
    assert isinstance(caught.value.__cause__.__cause__, KeyError)


def test_each_iteration_has_its_budget_to_itself(all_stages):
    loader = plain(all_stages, on_error="skip", max_skipped=7)
    assert len(kept(loader)) == len(kept(loader)) == 25
    assert loader.ledger["skipped"]["samples"] == 5


def test_a_budget_without_leave_to_skip_is_refused():
    with pytest.raises(onecopy.InvalidInputError, match="max_skipped") as caught:
        onecopy.open("a.tar", max_skipped=3)
    assert 'on_error="skip"' in caught.value.help
    with pytest.raises(onecopy.InvalidInputError, match="max_skipped"):
        onecopy.open("a.tar", on_error="skip", max_skipped=-1)
    with pytest.raises(onecopy.InvalidTypeError, match="max_skipped"):
        onecopy.open("a.tar", on_error="skip", max_skipped=0.01)


def test_what_every_shard_would_meet_is_asked_of_nobody(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = []
    for on_error in ["skip", asked.append]:
        urls = ["s3://bucket/a.tar", "s3://bucket/b.tar"]
        loader = onecopy.open(urls, endpoint_url="http://127.0.0.1:1", on_error=on_error)
        with pytest.raises(onecopy.DeniedError, match="no credentials"):
            list(loader)
    assert asked == []


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
