"""Iterations that are broken off, and gone on with elsewhere."""

import json
import pickle

import pytest

import onecopy


def labels(batches):
    return [batch[0].tolist() for batch in batches]


def make(urls, *, seed=3, capacity=30, size=7, **options):
    loader = onecopy.open(urls, as_="numpy", **options).shuffle(capacity, seed=seed)
    return loader.decode().to_tuple("cls").batch(size)


def taken(iterator, count):
    return labels(next(iterator) for _ in range(count))


@pytest.mark.parametrize("lanes", [None, 1, 3])
def test_a_run_goes_on_behind_what_was_received_whatever_was_read_ahead(urls, lanes):
    whole = labels(make(urls, lanes=lanes))
    for stop in range(len(whole) + 1):
        first = make(urls, lanes=lanes)
        given = taken(iter(first), stop)
        # A state is plain: it may come by way of a checkpoint.
        state = json.loads(json.dumps(first.state_dict()))
        assert len(json.dumps(state)) < 1024
        then = make(urls, lanes=lanes)
        then.load_state_dict(state)
        rest = labels(then)
        if stop == len(whole):
            # Received, but not known to be the last: what is left of the epoch is nothing.
            following = make(urls, lanes=lanes)
            following.set_epoch(1)
            assert rest == labels(following)
        else:
            assert given + rest == whole


def test_a_state_is_of_the_consumer_in_the_midst_of_a_loop(urls):
    loader = make(urls)
    given = []
    for batch in loader:
        given.append(batch[0].tolist())
        if len(given) == 4:
            state = loader.state_dict()
        if len(given) == 6:
            break
    assert loader.state_dict() != state
    again = make(urls)
    again.load_state_dict(state)
    assert taken(iter(again), 2) == given[4:]


def test_a_run_can_be_broken_off_twice_and_across_epochs(urls):
    loader = make(urls)
    epochs = [labels(loader) for _ in range(3)]
    loader = make(urls)
    labels(loader)
    iterator = iter(loader)
    given = taken(iterator, 3)
    for _ in range(2):
        state = loader.state_dict()
        loader = make(urls)
        loader.load_state_dict(state)
        iterator = iter(loader)
        given += taken(iterator, 2)
    assert given + labels(iterator) == epochs[1]
    state = loader.state_dict()
    assert (state["epoch"], "position" in state) == (2, False)
    assert labels(loader) == epochs[2]


def test_before_the_first_step_a_state_is_the_beginning_of_the_epoch(urls):
    loader = make(urls)
    assert loader.state_dict() == {"onecopy": 1, "epoch": 0}
    loader.set_epoch(5)
    assert loader.state_dict() == {"onecopy": 1, "epoch": 5}
    epoch = labels(loader)
    again = make(urls)
    again.load_state_dict({"onecopy": 1, "epoch": 5})
    assert labels(again) == epoch


def test_the_epoch_of_a_state_may_be_set_again_and_another_one_begins_anew(urls):
    loader = make(urls)
    whole = labels(loader)
    iterator = iter(loader)
    taken(iterator, 2)
    state = loader.state_dict()
    again = make(urls)
    again.load_state_dict(state)
    again.set_epoch(1)
    rest = labels(again)
    assert 0 < len(rest) < len(whole)
    again.load_state_dict(state)
    again.set_epoch(0)
    assert labels(again) == whole


def test_a_loader_is_pickled_with_the_state_that_it_is_to_go_on_from(urls):
    loader = make(urls)
    whole = labels(loader)
    loader.set_epoch(0)
    taken(iter(loader), 5)
    again = make(urls)
    again.load_state_dict(loader.state_dict())
    assert labels(pickle.loads(pickle.dumps(again))) == whole[5:]  # noqa: S301


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seed": 4}, "seed"),
        ({"capacity": 31}, "shuffle"),
        ({"size": 8}, "global batch"),
    ],
)
def test_a_state_of_another_order_is_refused_with_the_difference(urls, change, name):
    loader = make(urls)
    taken(iter(loader), 2)
    other = make(urls, **change)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match=name):
        iter(other)


def test_a_state_of_other_data_is_refused(urls):
    loader = make(urls)
    taken(iter(loader), 2)
    other = make(urls[:-1])
    other.load_state_dict(loader.state_dict())
    with pytest.raises(onecopy.InvalidInputError, match="dataset"):
        iter(other)


@pytest.mark.parametrize(
    "change",
    [
        {"onecopy": 2},
        {"epoch": None},
        {"epoch": -1},
        {"epoch": "1"},
        {"batch": 1.5},
        {"shuffle": [1]},
        {"shuffle": ["a", "b"]},
        {"position": 7},
        {"position": "0:####"},
        {"position": "9:AAAAAAA"},
        {"position": "x"},
    ],
)
def test_a_damaged_state_is_refused(urls, change):
    loader = make(urls)
    taken(iter(loader), 2)
    state = {**loader.state_dict(), **change}

    def go_on():
        loader.load_state_dict(state)
        return iter(loader)

    with pytest.raises(onecopy.InvalidInputError, match="state"):
        go_on()
    with pytest.raises(onecopy.InvalidInputError, match="not a dict"):
        loader.load_state_dict([1])


def test_functions_in_python_change_nothing_of_where_a_run_goes_on(urls):
    def mapped():
        loader = onecopy.open(urls, as_="numpy").shuffle(30, seed=3).decode().to_tuple("cls")
        return loader.map(lambda sample: sample).batch(7)

    whole = labels(mapped())
    assert whole == labels(make(urls))
    first = mapped()
    taken(iter(first), 4)
    then = mapped()
    then.load_state_dict(first.state_dict())
    assert labels(then) == whole[4:]


def test_single_samples_go_on_one_by_one(urls):
    def samples():
        return onecopy.open(urls).shuffle(30, seed=3).decode().to_tuple("cls")

    whole = [label for (label,) in samples()]
    first = samples()
    iterator = iter(first)
    given = [next(iterator)[0] for _ in range(33)]
    then = samples()
    then.load_state_dict(first.state_dict())
    assert given + [label for (label,) in then] == whole


def test_a_closed_iterator_gives_nothing_and_leaves_the_state_as_it_was(urls):
    loader = make(urls)
    iterator = iter(loader)
    given = taken(iterator, 2)
    state = loader.state_dict()
    iterator.close()
    assert list(iterator) == []
    assert loader.state_dict() == state
    loader.load_state_dict(state)
    iterator = iter(loader)
    iterator.close()
    assert list(iterator) == []
    loader.load_state_dict(state)
    assert given + labels(loader) == labels(make(urls))


def test_an_iteration_that_does_not_begin_costs_nothing_of_the_state(urls):
    loader = make(urls)
    taken(iter(loader), 2)
    state = loader.state_dict()
    other = make(urls, size=8)
    other.load_state_dict(state)
    with pytest.raises(onecopy.InvalidInputError):
        iter(other)
    assert other.state_dict() == state


def test_an_iteration_that_gave_nothing_has_not_been(urls):
    loader = make(urls)
    epochs = [labels(loader) for _ in range(2)]
    begun = make(urls)
    iter(begun)  # Lightning looks whether it can be done
    assert [labels(begun), labels(begun)] == epochs
    first = make(urls)
    taken(iter(first), 3)
    state = first.state_dict()
    then = make(urls)
    then.load_state_dict(state)
    iter(then)
    assert then.state_dict() == state
    assert [labels(then), labels(then)] == [epochs[0][3:], epochs[1]]
    iter(then)
    then.set_epoch(0)
    assert labels(then) == epochs[0]


def test_what_fails_in_python_was_not_received(urls):
    def loader(function):
        chain = onecopy.open(urls, as_="numpy").shuffle(30, seed=3).decode().to_tuple("cls")
        return chain.map(function).batch(7)

    seen = []

    def failing(sample):
        seen.append(sample)
        if len(seen) == 10:
            raise RuntimeError("no")
        return sample

    first = loader(failing)
    iterator = iter(first)
    given = taken(iterator, 1)
    with pytest.raises(RuntimeError, match="no"):
        next(iterator)
    then = loader(lambda sample: sample)
    then.load_state_dict(first.state_dict())
    assert given + labels(then) == labels(loader(lambda sample: sample))


def test_behind_an_epoch_a_state_is_of_the_one_that_was_set(urls):
    loader = make(urls)
    labels(loader)
    loader.set_epoch(5)
    assert loader.state_dict()["epoch"] == 5
    again = make(urls)
    again.load_state_dict(loader.state_dict())
    assert labels(again) == labels(loader)


def test_seeds_and_epochs_of_64_bits_come_back(urls):
    loader = make(urls, seed=2**64 - 1)
    loader.set_epoch(2**63)
    taken(iter(loader), 2)
    again = make(urls, seed=2**64 - 1)
    again.load_state_dict(loader.state_dict())
    whole = make(urls, seed=2**64 - 1)
    whole.set_epoch(2**63)
    assert labels(again) == labels(whole)[2:]
