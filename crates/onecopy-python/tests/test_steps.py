"""Epochs of so many steps, whatever there is to read."""

import json
from itertools import chain

import pytest

import onecopy
import shards
from onecopy import _onecopy

data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def labels(batches):
    return [batch[0].tolist() for batch in batches]


def make(urls, steps, *, size=4, function=None, **options):
    loader = onecopy.open(urls, as_="numpy", steps_per_epoch=steps, **options)
    loader = loader.shuffle(40, seed=3).decode().to_tuple("cls")
    loader = loader if function is None else loader.map(function)
    return loader.batch(size)


def ranks(urls, steps, world=2, **options):
    return [
        labels(make(urls, steps, rank=rank, world_size=world, **options)) for rank in range(world)
    ]


@pytest.mark.parametrize("function", [None, lambda sample: sample])
@pytest.mark.parametrize("steps", [3, 12, 13, 40])
def test_ranks_without_an_index_make_the_steps_that_are_asked_for(urls, steps, function):
    of_ranks = ranks(urls, steps, function=function)
    assert [len(rank) for rank in of_ranks] == [steps, steps]
    assert all(len(batch) == 4 for batch in chain.from_iterable(of_ranks))
    first, second = (list(chain.from_iterable(rank)) for rank in of_ranks)
    assert not set(first) & set(second)
    for rank in (first, second):
        # Nothing comes twice before all 50 samples of the rank came once.
        for begin in range(0, len(rank), 50):
            one_pass = rank[begin : begin + 50]
            assert len(set(one_pass)) == len(one_pass)


def test_the_ledger_tells_how_often_shards_were_begun(urls):
    loader = make(urls, 30, rank=0, world_size=2)
    list(loader)
    assert loader.ledger["passes"] == 3
    assert "begun 3 times" in str(loader.ledger)
    loader = make(urls, 12, rank=0, world_size=2)
    list(loader)
    assert loader.ledger["passes"] == 1
    assert "begun" not in str(loader.ledger)


def test_passes_and_epochs_differ_in_their_order(urls):
    loader = make(urls, 50)
    flat = list(chain.from_iterable(labels(loader)))
    assert sorted(flat[:100]) == sorted(flat[100:])
    assert flat[:100] != flat[100:]
    assert flat != list(chain.from_iterable(labels(loader)))


@pytest.mark.parametrize("function", [None, lambda sample: sample])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_run_goes_on_at_any_step_of_any_pass(urls, function, on_error):
    def loader():
        return make(urls, 20, rank=1, world_size=2, function=function, lanes=2, on_error=on_error)

    whole = labels(loader())
    for stop in range(21):
        first = loader()
        iterator = iter(first)
        given = labels(next(iterator) for _ in range(stop))
        state = json.loads(json.dumps(first.state_dict()))
        assert len(json.dumps(state)) < 1024
        then = loader()
        then.load_state_dict(state)
        if stop == 20:
            assert (state["epoch"], "position" in state) == (1, False)
        else:
            assert given + labels(then) == whole


def test_a_state_of_another_rank_or_another_number_of_steps_is_refused(urls):
    first = make(urls, 20, rank=1, world_size=2)
    next(iter(first))
    state = first.state_dict()
    assert state["part"] == [1, 2]
    for steps, rank, why in [
        (20, 0, r"process .* was \(1, 2\) and is \(0, 2\) now"),
        (21, 1, "steps_per_epoch was 20 and is 21 now"),
        (None, 0, "was"),
    ]:
        world = 2 if steps else 1
        other = make(urls, steps, rank=rank, world_size=world)
        other.load_state_dict(state)
        with pytest.raises(onecopy.InvalidInputError, match=why):
            iter(other)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("steps", [2, 17])
def test_workers_make_the_steps_of_their_rank_together(urls, workers, steps):
    more = [*urls, *urls]
    loader = make(more, steps, rank=1, world_size=2)
    loader.set_epoch(0)
    given = labels(data.DataLoader(loader, batch_size=None, num_workers=workers))
    assert [len(batch) for batch in given] == [4] * steps


def test_fewer_shards_than_processes_are_refused_with_the_cure(urls):
    with pytest.raises(onecopy.InvalidInputError, match="4 shards cannot be dealt to 5") as error:
        iter(make(urls, 3, rank=0, world_size=5))
    assert "onecopy index" in str(error.value)
    with pytest.raises(onecopy.InvalidInputError, match="steps_per_epoch"):
        iter(make(urls, None, rank=0, world_size=2))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_numbers_of_steps_that_cannot_be_are_refused(urls, value):
    with pytest.raises(onecopy.InvalidInputError, match="steps_per_epoch"):
        onecopy.open(urls, steps_per_epoch=value)


def odd_is_none(data):
    if int(data) % 2:
        raise ValueError(data)
    return int(data)


def none_at_all(data):
    raise ValueError(data)


@pytest.mark.parametrize("decoder", ["cls", odd_is_none])
def test_a_rank_that_leaves_samples_out_makes_exactly_its_steps(tmp_path, decoder):
    def field(at):
        return b"cat" if decoder == "cls" and at % 2 else str(at).encode()

    made = [
        shards.write(
            tmp_path / f"{shard}.tar",
            {f"{at:03}": {"cls": field(at)} for at in range(shard * 10, shard * 10 + 10)},
        )
        for shard in range(4)
    ]
    for rank in range(2):
        loader = onecopy.open(
            made, as_="numpy", steps_per_epoch=9, on_error="skip", rank=rank, world_size=2
        )
        loader = loader.decode(cls=decoder).to_tuple("cls").batch(4)
        given = labels(loader)
        assert [len(batch) for batch in given] == [4] * 9
        assert all(label % 2 == 0 for label in chain.from_iterable(given))
        assert len(labels(loader)) == 9


@pytest.mark.parametrize("size", [None, 4])
def test_a_decoder_that_refuses_everything_ends_the_run_with_an_error(urls, size):
    loader = onecopy.open(urls, steps_per_epoch=9, on_error="skip").decode(cls=none_at_all)
    loader = loader if size is None else loader.batch(size)
    with pytest.raises(onecopy.NotFoundError, match="all of them were left out"):
        list(loader)


def test_with_an_index_the_epoch_is_cut_or_goes_round(urls, tmp_path):
    command = ["onecopy", "index", *urls, "--out", str(tmp_path / "index"), "--quiet"]
    assert _onecopy.run_command(command) == 0
    index = tmp_path / "index" / "index.json"
    for steps, padded, dropped in [(5, 0, 60), (20, 60, 0)]:
        plan = make(urls, steps, index=index, rank=0, world_size=2).plan()
        assert (plan.steps, plan.padded, plan.dropped) == (steps, padded, dropped)
        of_ranks = ranks(urls, steps, index=index, lanes=8)
        together = [sorted(chain(*step)) for step in zip(*of_ranks, strict=True)]
        alone = labels(make(urls, steps, index=index, size=8, lanes=8))
        assert [sorted(batch) for batch in alone] == together
        assert len(together) == steps
    first = make(urls, 20, index=index)
    assert len(first) == 20
    single = onecopy.open(urls, index=index, steps_per_epoch=3).decode()
    assert (len(single), single[99]["cls"]) == (3, 99)
    next(iter(first))
    other = make(urls, 21, index=index)
    other.load_state_dict(first.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match="steps_per_epoch"):
        iter(other)


def test_a_plan_without_an_index_says_the_steps(urls):
    plan = make(urls, 7, rank=1, world_size=2).plan()
    assert (plan.steps, plan.samples, plan.global_batch) == (7, None, 8)
    assert "7 steps of 8 samples; samples are not counted" in str(plan)


def test_a_batch_of_many_passes_is_no_sign_that_all_was_left_out(tmp_path):
    fields = {f"{at:03}": {"cls": b"cat" if at == 3 else str(at).encode()} for at in range(10)}
    url = shards.write(tmp_path / "a.tar", fields)
    loader = onecopy.open(url, as_="numpy", steps_per_epoch=3, on_error="skip")
    loader = loader.decode(cls=int).to_tuple("cls").batch(64)
    assert [len(batch[0]) for batch in loader] == [64, 64, 64]
