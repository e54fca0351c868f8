"""Several loaders as one."""

import json
import math
import pickle
from itertools import chain

import pytest

import onecopy
import shards
from onecopy import _onecopy

data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.fixture
def sources(tmp_path, make_index):
    """Two sources: of 60 samples from 0 on, and of 40 from 1000 on, with their indexes."""
    made = []
    for source, (count, first) in enumerate([(15, 0), (10, 1000)]):
        urls = [
            shards.small(tmp_path / f"{source}-{at}.tar", first + at * count, count)
            for at in range(4)
        ]
        made.append((urls, make_index(urls, tmp_path / f"i{source}")))
    return made


def parts(sources, *, is_indexed=True, capacity=20, **options):
    return [
        onecopy.open(urls, as_="numpy", index=index if is_indexed else None, **options).shuffle(
            capacity, seed=seed
        )
        for seed, (urls, index) in enumerate(sources)
    ]


def make(sources, *, weights=(2, 1), size=4, tail="pad", **options):
    how = {"seed": options.pop("seed", 5), "stop": options.pop("stop", "first_exhausted")}
    mixed = onecopy.mix(parts(sources, **options), weights=weights, **how)
    mixed = mixed.decode().to_tuple("cls")
    return mixed.batch(size, tail=tail if options.get("is_indexed", True) else None)


def labels(batches):
    return [batch[0].tolist() for batch in batches]


def flat(batches):
    return list(chain.from_iterable(batches))


def together(of_ranks):
    assert len({len(steps) for steps in of_ranks}) == 1, "unequal steps"
    return [sorted(chain.from_iterable(step)) for step in zip(*of_ranks, strict=True)]


def world(sources, ranks, state=None, **options):
    of_ranks = []
    for rank in range(ranks):
        loader = make(sources, size=16 // ranks, rank=rank, world_size=ranks, **options)
        if state is not None:
            loader.load_state_dict(state)
        of_ranks.append(labels(loader))
    return together(of_ranks)


def counts(samples):
    first = sum(label < 1000 for label in samples)
    return first, len(samples) - first


@pytest.mark.parametrize("stop", ["first_exhausted", "all_exhausted"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_number_of_ranks_sees_the_same_global_batches(sources, ranks, stop):
    steps = world(sources, ranks, stop=stop)
    assert steps == world(sources, 1, stop=stop)
    samples = flat(steps)
    assert min(counts(samples)) > 0
    if stop == "all_exhausted":
        assert len(set(samples)) == 100
    else:
        assert len(set(samples)) > len(samples) - 16


@pytest.mark.parametrize("is_indexed", [True, False])
def test_samples_come_in_proportion_and_each_source_in_its_own_order(sources, is_indexed):
    loader = make(sources, weights=[1, 4], tail="short", is_indexed=is_indexed)
    samples = flat(labels(loader))
    first, second = counts(samples)
    assert second == 40
    assert 2 <= first <= 22
    assert len(set(samples)) == len(samples)
    alone = [flat(labels(part.decode().to_tuple("cls").batch(4))) for part in parts(sources)]
    assert set(samples) <= set(flat(alone))
    assert samples != sorted(samples)


def test_seed_epoch_and_weights_each_change_the_order(sources):
    loader = make(sources)
    first, second = flat(labels(loader)), flat(labels(loader))
    assert first != second
    assert flat(labels(make(sources))) == first
    assert flat(labels(make(sources, seed=6))) != first
    assert flat(labels(make(sources, weights=None))) != first


def test_a_state_of_four_ranks_goes_on_with_two_and_with_one(sources):
    whole = world(sources, 1)
    for stop in range(0, len(whole), 2):
        states = []
        for rank in range(4):
            loader = make(sources, rank=rank, world_size=4)
            iterator = iter(loader)
            for _ in range(stop):
                next(iterator)
            states.append(json.dumps(loader.state_dict()))
        assert len(set(states)) == 1
        assert len(states[0]) < 1024
        for ranks in (1, 2):
            assert world(sources, ranks, json.loads(states[0])) == whole[stop:]


@pytest.mark.parametrize("function", [None, lambda sample: sample])
@pytest.mark.parametrize("stop", ["first_exhausted", "all_exhausted"])
@pytest.mark.parametrize("steps", [None, 50])
def test_without_an_index_a_run_goes_on_at_any_step(sources, stop, steps, function):
    def loader():
        loaders = parts(sources, is_indexed=False, steps_per_epoch=steps)
        mixed = onecopy.mix(loaders, weights=[2, 1], seed=1, stop=stop).decode().to_tuple("cls")
        mixed = mixed if function is None else mixed.map(function)
        return mixed.batch(4)

    whole = labels(loader())
    if steps is not None:
        assert [len(batch) for batch in whole] == [4] * steps
    elif stop == "all_exhausted":
        assert len(set(flat(whole))) == 100
    for at in range(0, len(whole), 3):
        first = loader()
        iterator = iter(first)
        given = labels(next(iterator) for _ in range(at))
        state = json.loads(json.dumps(first.state_dict()))
        assert len(json.dumps(state)) < 1024
        then = loader()
        then.load_state_dict(state)
        assert given + labels(then) == whole


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_of_a_dataloader_make_the_epoch_together(sources, workers, is_indexed):
    loader = make(sources, is_indexed=is_indexed, stop="all_exhausted")
    loader.set_epoch(0)
    given = flat(labels(data.DataLoader(loader, batch_size=None, num_workers=workers)))
    assert len(set(given)) == 100


def test_ranks_without_an_index_need_steps(sources):
    options = {"is_indexed": False, "rank": 0, "world_size": 2}
    with pytest.raises(onecopy.InvalidInputError, match="steps_per_epoch"):
        iter(make(sources, **options))
    both = [
        flat(labels(make(sources, **{**options, "rank": rank}, steps_per_epoch=9)))
        for rank in range(2)
    ]
    assert [len(one) for one in both] == [36, 36]
    assert not set(both[0]) & set(both[1])


def test_the_ledger_counts_each_source(sources):
    for is_indexed in (True, False):
        loader = make(sources, is_indexed=is_indexed, tail="short")
        samples = flat(labels(loader))
        of = loader.ledger["sources"]
        assert tuple(one["samples"] for one in of) == counts(samples)
        assert sum(one["payload_bytes"] for one in of) == loader.ledger["payload_bytes"]
        assert "1-3.tar" in of[1]["urls"]
        assert f"{of[1]['samples']} samples" in str(loader.ledger)
    loader = parts(sources)[0].batch(4)
    list(loader)
    assert loader.ledger["sources"] == []


def test_a_plan_says_how_often_each_source_is_read(sources):
    plan = make(sources, weights=[1, 3], stop="all_exhausted", tail="short").plan()
    first, second = plan.sources
    assert (first.dataset_samples, second.dataset_samples) == (60, 40)
    assert first.samples == 60
    assert second.times > 2
    assert plan.padded == second.samples - 40
    assert f"source 1: {second.samples} of 40 samples" in str(plan)
    plan = make(sources, weights=[1, 3], tail="short").plan()
    assert plan.sources[1].samples == 40
    assert plan.dropped == 60 - plan.sources[0].samples
    plan = make(sources, steps_per_epoch=7).plan()
    assert (plan.steps, plan.samples) == (7, 28)


def test_the_length_is_that_of_the_epoch(sources):
    loader = make(sources)
    assert len(loader) == len(labels(loader))
    with pytest.raises(onecopy.InvalidTypeError, match="no index"):
        len(make(sources, is_indexed=False))


def test_parts_of_data_are_mixed_as_parts(sources):
    (urls, index), (more, more_index) = sources
    train, val = onecopy.open(urls, as_="numpy", index=index).split(0.5, seed=1)
    ten = onecopy.open(more, as_="numpy", index=more_index)[:10]
    given = []
    for part in (train, val):
        mixed = onecopy.mix([part, ten], stop="all_exhausted").decode().to_tuple("cls").batch(1)
        given.append({label for label in flat(labels(mixed)) if label < 1000})
        assert max(flat(labels(mixed))) == 1009
    assert len(given[0]) == len(given[1]) == 30
    assert not given[0] & given[1]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_mixture_is_pickled(sources, is_indexed):
    loader = make(sources, is_indexed=is_indexed)
    whole = labels(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    next(iterator)
    again = pickle.loads(pickle.dumps(loader))  # noqa: S301
    again.set_epoch(0)
    assert labels(again) == whole


def test_a_mixture_shows_what_it_is_made_of(sources):
    shown = repr(make(sources, weights=[2, 1]))
    assert shown.startswith("<onecopy.mix([onecopy.open('file://")
    assert ".shuffle(20, seed=1)], weights=[2.0, 1.0], seed=5, stop='first_exhausted')" in shown


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"weights": [2, 2]}, r"weights 2\.0 1\.0 and is weights 2\.0 2\.0"),
        ({"seed": 6}, "the mixture was seed 5 and is seed 6"),
        ({"stop": "all_exhausted"}, "stop first_exhausted"),
        ({"capacity": 30}, "shuffles 20/0 20/1"),
    ],
)
def test_a_state_of_another_mixture_is_refused_with_the_difference(
    sources, is_indexed, change, why
):
    first = make(sources, is_indexed=is_indexed)
    next(iter(first))
    other = make(sources, **{"is_indexed": is_indexed, **change})
    other.load_state_dict(first.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match=why):
        iter(other)


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_state_of_other_sources_is_refused(sources, is_indexed):
    first = make(sources, is_indexed=is_indexed)
    next(iter(first))
    turned = make(sources[::-1], is_indexed=is_indexed)
    turned.load_state_dict(first.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match="dataset"):
        iter(turned)
    alone = parts(sources[:1], is_indexed=is_indexed, lanes=32)[0].decode().to_tuple("cls")
    alone = alone.batch(4, tail="pad" if is_indexed else None)
    alone.load_state_dict(first.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match="state"):
        iter(alone)


@pytest.mark.parametrize(
    "change",
    [{"mix": "seed"}, {"mix": [1]}, {"position": "1;0:AAAA"}, {"position": "x;0,0:AAAAAAA"}],
)
def test_a_damaged_state_is_refused(sources, change):
    loader = make(sources, is_indexed=False)
    next(iter(loader))
    state = {**loader.state_dict(), **change}

    def go_on():
        loader.load_state_dict(state)
        iter(loader)

    with pytest.raises(onecopy.InvalidInputError, match="state"):
        go_on()


@pytest.mark.parametrize(
    "weights",
    [[1], [1, 2, 3], [1, 0], [1, -1], [1, math.nan], [1, math.inf], [1, True], [1, "2"], 3, "12",
     [1, 10**400], [1, 1e-20]],
)  # fmt: skip
def test_weights_that_cannot_be_are_refused(sources, weights):
    with pytest.raises(onecopy.InvalidInputError, match="weight"):
        onecopy.mix(parts(sources), weights=weights)


def test_what_cannot_be_mixed_is_refused_with_what_to_do(sources, url):
    first, second = parts(sources)
    for loaders, why in [
        ([], "there is none"),
        ([first, second.decode()], "after mix"),
        ([first, second.map(str)], "after mix"),
        ([first.batch(3), second], "after mix"),
        ([onecopy.mix([first]), second], "mixture itself"),
        ([first, onecopy.open(url, as_="numpy", memory="32MiB")], "memory=33554432"),
        ([first, onecopy.open(url, as_="numpy", on_error="skip")], "on_error='skip'"),
        ([first, onecopy.open(url, as_="numpy", rank=1, world_size=2)], "rank=1"),
        ([first, onecopy.open(url, as_="torch")], "as_='torch'"),
        ([first, onecopy.open(url, as_="numpy", lanes=3)], "lanes=3"),
        ([first, onecopy.open(url, as_="numpy", wait_limit=7)], "wait_limit=7"),
        ([first, onecopy.open(url, as_="numpy", steps_per_epoch=3)], "steps_per_epoch=3"),
    ]:
        with pytest.raises(onecopy.InvalidInputError, match=why):
            onecopy.mix(loaders)
    second.set_epoch(3)
    with pytest.raises(onecopy.InvalidInputError, match="set_epoch"):
        onecopy.mix([first, second])
    for wrong in (first, 3, [first, 3]):
        with pytest.raises(onecopy.InvalidTypeError):
            onecopy.mix(wrong)
    with pytest.raises(onecopy.InvalidInputError, match="stop"):
        onecopy.mix([first], stop="never")
    mixed = onecopy.mix([first])
    for step in (
        lambda: mixed.shuffle(10),
        lambda: mixed[:3],
        lambda: mixed[3],
        lambda: mixed.subset([1]),
        lambda: mixed.split(0.5),
    ):
        with pytest.raises(onecopy.InvalidInputError, match="before mix"):
            step()


def test_a_function_of_on_error_is_asked_for_all_sources(tmp_path):
    urls = [
        shards.write(tmp_path / f"{at}.tar", {f"{at}{n}": {"cls": b"cat"} for n in range(5)})
        for at in range(2)
    ]
    good = shards.small(tmp_path / "good.tar", 0, 5)
    asked = []

    def decide(error):
        asked.append(error.shard)
        return "skip"

    loaders = [
        onecopy.open([url, good], as_="numpy", on_error=decide, max_skipped=99) for url in urls
    ]
    mixed = onecopy.mix(loaders, stop="all_exhausted").decode().to_tuple("cls").batch(2)
    assert set(flat(labels(mixed))) == set(range(5))
    assert {shard.rpartition("/")[2] for shard in asked} == {"0.tar", "1.tar"}


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_source_without_samples_is_an_error(sources, tmp_path, is_indexed):
    urls = [shards.write(tmp_path / "empty.tar", {})]
    command = ["onecopy", "index", *urls, "--out", str(tmp_path / "none"), "--quiet"]
    _onecopy.run_command(command)
    loaders = parts(sources, is_indexed=is_indexed)
    index = tmp_path / "none" / "index.json" if is_indexed else None
    mixed = onecopy.mix([*loaders, onecopy.open(urls, as_="numpy", index=index)])
    with pytest.raises(onecopy.Error, match="source 2"):
        list(mixed)


@pytest.mark.parametrize("capacity", [0, 20])
def test_workers_of_ranks_do_not_guess_what_is_drawn(sources, capacity):
    mixed = make(sources, capacity=capacity, rank=0, world_size=2)
    with pytest.raises(onecopy.InvalidInputError, match="set_epoch"):
        list(data.DataLoader(mixed, batch_size=None, num_workers=1))


def test_parts_in_a_mixture_need_an_index_of_all(sources):
    (urls, index), (others, _) = sources
    part = onecopy.open(urls, index=index)[:10]
    with pytest.raises(onecopy.InvalidInputError, match="onecopy index"):
        iter(onecopy.mix([part, onecopy.open(others)]))


def test_the_length_is_that_of_the_next_epoch(sources):
    mixed = make(sources, weights=(1, 1), size=1, tail="short")
    lengths = []
    for epoch in range(5):
        mixed.set_epoch(epoch)
        lengths.append(len(mixed))
        assert len(labels(mixed)) == lengths[-1]
    assert len(set(lengths)) > 1


def test_ranks_say_what_becomes_of_the_last_samples(sources):
    with pytest.raises(onecopy.InvalidInputError, match="lengths of their own"):
        iter(make(sources, tail="short", rank=0, world_size=2))
