"""What becomes of errors: at every stage, by every policy, and no more of them than may be."""

import logging

import pytest

import onecopy
import shards
from stages import STAGES, by_function, expected, kept, odd, plain, samples, stages, write


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
