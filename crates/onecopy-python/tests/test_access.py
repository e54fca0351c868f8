"""Parts of the data, and samples by their number."""

import os
import pickle
from itertools import chain

import pytest

import onecopy
from shards import small


@pytest.fixture(name="data")
def indexed(tmp_path, make_index):
    """Forty samples in shards of unlike lengths, an empty one among them, and their index."""
    first, urls = 0, []
    for number, count in enumerate([5, 1, 0, 7, 27]):
        urls.append(small(tmp_path / f"{number}.tar", first, count))
        first += count
    return urls, make_index(urls, tmp_path)


def make(data, **options):
    urls, index = data
    return onecopy.open(urls, index=index, as_="numpy", **options).decode().to_tuple("cls")


def numbers(loader):
    return [int(label) for (label,) in loader]


def test_samples_are_numbered_as_they_stand_in_the_shards(data):
    loader = make(data)
    assert len(loader) == 40
    assert [int(loader[at][0]) for at in (0, 4, 5, 6, 12, 13, 39, -1, -40)] == [
        *(0, 4, 5, 6, 12, 13, 39),
        *(39, 0),
    ]
    # A shuffle is an order of iterating: numbers stay.
    assert int(loader.shuffle(20)[7][0]) == 7
    assert [int(one) for (one,) in loader.__getitems__([30, 2, 2, -1])] == [30, 2, 2, 39]
    assert loader.__getitems__([]) == []


def test_what_is_given_is_what_iterating_gives(data):
    loader = make(data).map(lambda sample: {"label": int(sample[0]) * 2})
    assert loader[9] == {"label": 18}
    assert list(loader)[9] == loader[9]


def test_slices_are_loaders_of_some_samples(data):
    loader = make(data)
    every = list(range(40))
    for part in (
        slice(3, 20, 2),
        slice(-5, None),
        slice(None, -35),
        slice(8, 8 + 2**70),
        slice(None, None, 7),
        slice(2, None, 2**70),
    ):
        chosen = loader[part]
        assert numbers(chosen) == every[part]
        assert len(chosen) == len(every[part])
    assert numbers(loader[10:30][::3][-2:]) == [25, 28]
    assert int(loader[10:][1][0]) == 11
    assert sorted(numbers(loader[::2].shuffle(30, seed=1))) == every[::2]
    assert len(loader[:10].batch(4)) == 3
    assert len(loader[:10].batch(4, drop_last=True)) == 2


def test_a_subset_is_in_the_order_of_the_data_and_can_be_pickled(data):
    loader = make(data).subset([30, 2, 17])
    assert numbers(loader) == [2, 17, 30]
    again = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert numbers(again) == [2, 17, 30]
    assert numbers(make(data).subset(range(0, 40, 9))) == [0, 9, 18, 27, 36]


def test_splits_share_nothing_and_are_the_whole(data):
    train, val, test = make(data).split(0.6, 0.3, seed=4)
    parts = [numbers(part) for part in (train, val, test)]
    assert [len(part) for part in parts] == [24, 12, 4]
    assert sorted(chain(*parts)) == list(range(40))
    # The same in every epoch, and on ranks together.
    again = make(data, rank=1, world_size=2).split(0.6, 0.3, seed=4)[0].batch(3)
    other = make(data, rank=0, world_size=2).split(0.6, 0.3, seed=4)[0].batch(3)
    together = [int(label) for loader in (again, other) for (batch,) in loader for label in batch]
    assert sorted(together) == sorted(parts[0])
    assert len(make(data).split(0.7, 0.2, 0.1)) == 3
    assert numbers(make(data).split(0.6, 0.3, seed=5)[0]) != parts[0]


def test_a_state_of_another_part_is_refused(data):
    train, val = make(data).split(0.5)
    iterator = iter(train.batch(3))
    next(iterator)
    batched = train.batch(3)
    given = iter(batched)
    next(given)
    state = batched.state_dict()
    other = val.batch(3)
    other.load_state_dict(state)
    with pytest.raises(onecopy.InvalidInputError, match="the dataset"):
        iter(other)
    again = train.batch(3)
    again.load_state_dict(state)
    assert numbers([(label,) for (batch,) in again for label in batch]) == numbers(train)[3:]


def test_len_is_of_one_rank_and_counts_batches(data):
    assert len(make(data, rank=1, world_size=2)) == 20
    assert len(make(data, rank=1, world_size=2).batch(3, tail="pad")) == 7
    assert len(make(data).shuffle(10).batch(3)) == 14
    assert len(make(data, steps_per_epoch=6).batch(3)) == 6
    assert len(onecopy.open(data[0], steps_per_epoch=6).batch(3)) == 6
    torch = pytest.importorskip("torch")
    loader = make(data).shuffle(10).batch(4)
    assert len(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=2)) == 10
    assert sum(1 for _ in torch.utils.data.DataLoader(loader, batch_size=None)) == 10


def test_a_sampler_of_torch_may_choose(data):
    torch = pytest.importorskip("torch")
    dataset = make(data).map(lambda sample: int(sample[0]))
    chosen = torch.utils.data.Subset(dataset, range(len(dataset)))
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(
            chosen, batch_size=8, shuffle=True, num_workers=workers
        )
        given = [batch.tolist() for batch in loader]
        assert [len(batch) for batch in given] == [8] * 5
        assert sorted(chain(*given)) == list(range(40))
        assert list(chain(*given)) != list(range(40))


def test_a_forked_process_looks_for_itself(data):
    loader = make(data)
    assert int(loader[3][0]) == 3
    pid = os.fork()
    if pid == 0:
        os._exit(0 if int(loader[4][0]) == 4 and len(loader) == 40 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert int(loader[5][0]) == 5


def test_what_cannot_be_is_refused(data):
    loader = make(data)
    for at in (40, -41, 2**80):
        with pytest.raises(onecopy.OutOfRangeError, match="there are 40"):
            loader[at]
    with pytest.raises(IndexError):
        loader[:5][5]
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            loader[wrong]
    with pytest.raises(onecopy.InvalidInputError, match="step"):
        loader[::-1]
    with pytest.raises(onecopy.InvalidInputError, match="twice"):
        loader.subset([1, 1])
    with pytest.raises(onecopy.InvalidInputError, match="counts from the end"):
        loader.subset([-1])
    with pytest.raises(onecopy.InvalidInputError, match="so many samples"):
        loader.subset([2**70])
    torch = pytest.importorskip("torch")
    for mask in ([True], torch.tensor([True, False])):
        with pytest.raises(onecopy.InvalidTypeError):
            loader.subset(mask)
    with pytest.raises(onecopy.InvalidInputError, match="sample 77 is asked for, and there are 40"):
        list(loader.subset([1, 77]))
    with pytest.raises(onecopy.InvalidInputError, match="before batch"):
        loader.batch(4)[2:]
    with pytest.raises(onecopy.InvalidInputError, match="before batch"):
        loader.batch(4)[2]
    for fractions in ((), (0,), (1.0,), (0.6, 0.6), (-0.1,), (float("nan"),), (True,), ("0.5",)):
        with pytest.raises(onecopy.InvalidInputError):
            loader.split(*fractions)


def test_without_an_index_nothing_is_counted(data):
    urls, _ = data
    loader = onecopy.open(urls, as_="numpy")
    with pytest.raises(TypeError, match="onecopy index"):
        len(loader)
    assert loader  # as any object, whatever its length is
    for use in (
        lambda: loader[3],
        lambda: loader[3:],
        lambda: loader.subset([3]),
        lambda: loader.split(0.5),
    ):
        with pytest.raises(onecopy.InvalidInputError, match="onecopy index"):
            use()
    assert len(list(loader)) == 40


def test_a_sample_that_is_damaged_is_an_error_whatever_is_left_out(tmp_path, make_index):
    url = small(tmp_path / "a.tar", 0, 3)
    body = bytearray((tmp_path / "a.tar").read_bytes())
    body[1024 + 512] = ord("x")
    (tmp_path / "a.tar").write_bytes(body)
    loader = make(([url], make_index([url], tmp_path)), on_error="skip")
    assert int(loader[0][0]) == 0
    with pytest.raises(onecopy.CorruptError, match="000001"):
        loader[1]
    assert int(loader[2][0]) == 2
