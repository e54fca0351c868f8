"""Data that ranks and workers divide among themselves, with an index."""

import json
from itertools import chain, islice

import pytest

import onecopy
import shards

data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.fixture
def index(urls, tmp_path, make_index):
    """Four shards of 25 samples, and their index."""
    return make_index(urls, tmp_path / "index")


def make(urls, index, *, size=4, tail="pad", seed=3, **options):
    loader = onecopy.open(urls, as_="numpy", index=index, **options).shuffle(40, seed=seed)
    return loader.decode().to_tuple("cls").batch(size, tail=tail)


def labels(batches):
    return [batch[0].tolist() for batch in batches]


def together(of_ranks):
    """Put what ranks got in each step together."""
    assert len({len(steps) for steps in of_ranks}) == 1, "unequal steps"
    return [sorted(chain.from_iterable(step)) for step in zip(*of_ranks, strict=True)]


def world(urls, index, ranks, state=None, global_batch=16, **options):
    """Read an epoch, or the rest of one, on so many ranks."""
    of_ranks = []
    for rank in range(ranks):
        loader = make(
            urls,
            index,
            size=global_batch // ranks,
            rank=rank,
            world_size=ranks,
            lanes=64,
            **options,
        )
        if state is not None:
            loader.load_state_dict(state)
        of_ranks.append(labels(loader))
    return together(of_ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_number_of_ranks_sees_the_same_global_batches(urls, index, ranks):
    steps = world(urls, index, ranks)
    assert steps == world(urls, index, 1)
    assert len(steps) == 7
    assert set(chain.from_iterable(steps)) == set(range(100))


def test_a_state_of_four_ranks_goes_on_with_two_and_with_eight(urls, index):
    whole = world(urls, index, 1)
    for stop in range(8):
        states = []
        for rank in range(4):
            loader = make(urls, index, rank=rank, world_size=4, lanes=64)
            iterator = iter(loader)
            for _ in range(stop):
                next(iterator)
            states.append(json.dumps(loader.state_dict()))
        assert len(set(states)) == 1
        assert len(states[0]) < 1024
        state = json.loads(states[0])
        if stop < 7:
            assert world(urls, index, 2, state) == whole[stop:]
            assert world(urls, index, 8, state) == whole[stop:]


def test_one_rank_and_two_see_the_same_whatever_the_memory_is(urls, index):
    alone = labels(make(urls, index, size=16))
    for memory in ("64MiB", "1GiB"):
        of_ranks = [
            labels(make(urls, index, size=8, rank=rank, world_size=2, memory=memory))
            for rank in range(2)
        ]
        assert together(of_ranks) == [sorted(step) for step in alone]


def test_a_run_that_goes_on_keeps_its_order_in_later_epochs(urls, index):
    first = make(urls, index, lanes=32)
    epochs = [labels(first) for _ in range(3)]
    first.set_epoch(0)
    iterator = iter(first)
    next(iterator)
    for state in (first.state_dict(), {**first.state_dict(), "epoch": 1, "position": None}):
        then = make(urls, index)
        then.load_state_dict(state)
        start = state["epoch"]
        rest = [labels(then) for _ in range(3 - start)]
        assert rest[-2:] == epochs[-2:]
        assert then.state_dict()["lanes"] == 32


@pytest.mark.parametrize("workers", [2, 3])
def test_a_state_without_workers_goes_on_with_any_number_of_them(urls, index, workers):
    whole = labels(make(urls, index, size=8, lanes=64))
    first = make(urls, index, size=8, lanes=64)
    given = labels(islice(iter(first), 5))
    state = first.state_dict()

    def load(_):
        data.get_worker_info().dataset.load_state_dict(state)

    then = make(urls, index, size=8)
    loader = data.DataLoader(
        then,
        batch_size=None,
        num_workers=workers,
        worker_init_fn=load,
        multiprocessing_context="fork",
    )
    rest = [batch[0].tolist() for batch in loader]
    # Steps come from the worker whose turn they are, and the DataLoader begins with the first one.
    turns = [rest.index(step) for step in whole[5:]]
    assert sorted(turns) == list(range(len(whole) - 5))
    assert given == whole[:5]


def test_workers_of_a_plain_dataloader_refuse_a_state_that_the_parent_loaded(urls, index):
    loader = make(urls, index)
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match="StatefulDataLoader"):
        list(data.DataLoader(loader, batch_size=None, num_workers=1))


def test_ranks_come_from_torchrun_and_what_is_said_counts_more(urls, index, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    second = labels(make(urls, index))
    assert second == labels(make(urls, index, rank=1, world_size=2))
    assert second != labels(make(urls, index, rank=0, world_size=2))
    assert len(labels(make(urls, index, world_size=1))) == 25
    # Both ranks of a group that shares a model see the same data.
    assert len(labels(make(urls, index, replicate=2))) == 25
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(onecopy.InvalidInputError, match="WORLD_SIZE=many"):
        iter(make(urls, index))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rank": 2, "world_size": 2}, "no rank 2 of 2"),
        ({"rank": 1}, "not enough"),
        ({"world_size": 2}, "not enough"),
        ({"rank": 0, "world_size": 3, "replicate": 2}, "groups of 2"),
        ({"rank": 0, "world_size": 3}, "64 lanes cannot be divided among 3 ranks"),
    ],
)
def test_ranks_that_cannot_be_are_refused(urls, index, options, why):
    with pytest.raises(onecopy.InvalidInputError, match=why):
        iter(make(urls, index, **options))


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_workers_take_turns_in_an_order_that_none_of_them_changes(urls, index, workers):
    loader = make(urls, index, rank=0, world_size=2, size=8, lanes=64)
    loader.set_epoch(0)
    whole = labels(make(urls, index, rank=0, world_size=2, size=8, lanes=64))
    given = labels(data.DataLoader(loader, batch_size=None, num_workers=workers))
    assert len(given) == len(whole)
    if workers < 2:
        assert given == whole


def test_workers_of_ranks_do_not_guess_the_epoch(urls, index):
    ranks = {"rank": 0, "world_size": 2}
    with pytest.raises(onecopy.InvalidInputError, match="set_epoch"):
        list(data.DataLoader(make(urls, index, **ranks), batch_size=None, num_workers=1))
    # Those that read the same are ranks as well.
    alike = make(urls, index, replicate=2, **ranks)
    with pytest.raises(onecopy.InvalidInputError, match="set_epoch"):
        list(data.DataLoader(alike, batch_size=None, num_workers=1))
    # Without a shuffle all epochs are alike.
    loader = onecopy.open(urls, index=index, **ranks).decode().to_tuple("cls").batch(8)
    assert len(list(data.DataLoader(loader, batch_size=None, num_workers=1))) == 7


def test_a_plan_says_steps_and_coverage_before_anything_is_read(urls, index):
    plan = make(urls, index, rank=0, world_size=2).plan()
    assert (plan.steps, plan.padded, plan.dropped, plan.global_batch) == (13, 4, 0, 8)
    assert (plan.dataset_samples, plan.samples) == (100, 104)
    assert sum(to - begin for _, begin, to in plan.odd) == 4
    assert (plan.lanes, plan.lanes_here) == (64, 32)
    assert plan.requests >= 32
    assert "13 steps of 8 samples" in str(plan)
    plan = make(urls, index, rank=0, world_size=2, tail="drop").plan()
    assert (plan.steps, plan.padded, plan.dropped) == (12, 0, 4)
    plan = onecopy.open(urls).batch(8).plan()
    assert (plan.steps, plan.samples, plan.lanes) == (None, None, 1)
    assert "not counted" in str(plan)


def test_a_stale_index_is_an_error_that_says_so(urls, index, tmp_path):
    shards.small(tmp_path / "1.tar", 25, 24)
    with pytest.raises(onecopy.ChangedError, match=r"1\.tar"):
        iter(make(urls, index))


def test_a_shard_that_is_said_to_be_empty_is_looked_at(urls, index):
    known = json.loads(index.read_text())
    known["shardlist"][2]["nsamples"] = 0
    index.write_text(json.dumps(known))
    with pytest.raises(onecopy.ChangedError, match=r"2\.tar.*more samples"):
        list(make(urls, index))


def test_an_index_of_other_shards_or_of_none_is_an_error(urls, index, url, tmp_path):
    with pytest.raises(onecopy.ChangedError, match="not in the index"):
        iter(make([*urls, url], index))
    with pytest.raises(onecopy.NotFoundError, match="gone"):
        iter(make(urls, tmp_path / "gone.json"))
    known = json.loads(index.read_text())
    known["shardlist"][0]["nsamples"] = 2**40
    index.write_text(json.dumps(known))
    with pytest.raises(onecopy.ChangedError, match="cannot have"):
        make(urls, index).plan()
    broken = tmp_path / "broken.json"
    broken.write_text('{"wids_version": 1, "shardlist": [')
    with pytest.raises(onecopy.CorruptError, match="broken"):
        iter(make(urls, broken))


def test_a_rank_that_leaves_samples_out_makes_as_many_steps_as_the_others(tmp_path, make_index):
    good = {f"{at:03}": {"cls": str(at).encode()} for at in range(40)}
    bad = {
        key: {"cls": b"cat" if "010" <= key < "030" else field["cls"]}
        for key, field in good.items()
    }
    urls = [shards.write(tmp_path / "0.tar", good), shards.write(tmp_path / "1.tar", bad)]
    index = make_index(urls, tmp_path / "index")
    for function in (None, lambda sample: sample):
        steps = []
        for rank in range(2):
            loader = onecopy.open(
                urls, as_="numpy", index=index, on_error="skip", rank=rank, world_size=2, lanes=2
            )
            loader = loader.decode().to_tuple("cls")
            loader = loader if function is None else loader.map(function)
            loader = loader.batch(5, tail="drop")
            steps.append(len(list(loader)))
            notes = loader.ledger["notes"]
            assert any("as many steps as the others" in note for note in notes) == (rank == 1)
        assert steps == [8, 8]


def test_a_rank_without_a_good_batch_ends_with_an_error(tmp_path, make_index):
    fields = {f"{at:03}": {"cls": b"cat" if at % 2 else b"1"} for at in range(8)}
    urls = [shards.write(tmp_path / "0.tar", fields)]
    index = make_index(urls, tmp_path / "index")
    how = {"as_": "numpy", "index": index, "on_error": "skip", "world_size": 2, "lanes": 2}
    loaders = [
        onecopy.open(urls, rank=rank, **how).decode().to_tuple("cls").batch(1) for rank in range(2)
    ]
    # The lanes are halves of the shard, which have good samples both.
    for loader in loaders:
        assert len(list(loader)) == 4
    bad = {key: {"cls": b"cat" if key >= "004" else b"1"} for key in fields}
    shards.write(tmp_path / "0.tar", bad)
    index = make_index(urls, tmp_path / "again")
    how["index"] = index
    good, none = (
        onecopy.open(urls, rank=rank, **how).decode().to_tuple("cls").batch(1) for rank in range(2)
    )
    assert len(list(good)) == 4
    with pytest.raises(onecopy.NotFoundError, match="other ranks make steps"):
        list(none)
