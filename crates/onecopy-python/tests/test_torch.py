"""Loaders and torch: tensors, datasets, workers."""

import multiprocessing
import pickle
import subprocess
import sys

import pytest

import onecopy
import shards

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

# Two cores are enough for three workers that have little to do.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def test_tensors_are_torchs_where_torch_is(url):
    images, labels = next(iter(onecopy.open(url).decode("rgb").to_tuple("png", "cls").batch(4)))
    assert (images.dtype, tuple(images.shape)) == (torch.uint8, (4, 3, 8, 6))
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert images.data_ptr() % 4096 == 0
    assert (labels.dtype, labels.tolist()) == (torch.int64, [0, 1, 2, 3])
    images.mul_(2)


def test_batches_made_in_python_are_torchs_and_channels_last(url):
    loader = onecopy.open(url).decode("rgb").to_tuple("png", "cls", "npy")
    made = loader.map(lambda s: (s[0], s[1], s[2].numpy(), s[1] / 2)).batch(4)
    images, labels, arrays, halves = next(iter(made))
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(images, next(iter(loader.batch(4)))[0])
    assert (labels.dtype, arrays.dtype, halves.dtype) == (
        torch.int64,
        torch.float32,
        torch.float64,
    )


def test_a_loader_is_an_iterable_dataset(url):
    loader = onecopy.open(url)
    assert isinstance(loader, data.IterableDataset)
    assert isinstance(loader, data.Dataset)
    assert isinstance(pickle.loads(pickle.dumps(loader)), data.IterableDataset)  # noqa: S301


def test_onecopy_imports_without_torch_and_becomes_a_dataset_later(url):
    code = (
        "import sys, onecopy; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; "
        f"loader = onecopy.open({url!r}, as_='numpy'); assert 'torch' not in sys.modules; "
        "import torch.utils.data; loader = loader.decode(); "
        "assert isinstance(loader, torch.utils.data.IterableDataset)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    assert subprocess.run(command, check=False).returncode == 0


def labels(loader):
    return sorted(label for batch in loader for label in batch[0].tolist())


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_dataloader_gives_every_sample_once(urls, workers):
    loader = onecopy.open(urls).decode().to_tuple("cls").batch(8)
    wrapped = data.DataLoader(loader, batch_size=None, num_workers=workers)
    assert labels(wrapped) == list(range(100))


def test_more_workers_than_shards_lose_and_repeat_nothing(url):
    loader = onecopy.open(url).decode().to_tuple("cls").batch(4)
    assert labels(data.DataLoader(loader, batch_size=None, num_workers=3)) == list(range(10))


def test_workers_can_be_spawned(urls):
    loader = onecopy.open(urls).decode().to_tuple("cls").batch(8)
    wrapped = data.DataLoader(
        loader,
        batch_size=None,
        num_workers=2,
        multiprocessing_context=multiprocessing.get_context("spawn"),
    )
    assert labels(wrapped) == list(range(100))


def test_workers_can_be_forked_while_the_parent_iterates(urls):
    loader = onecopy.open(urls).decode().to_tuple("cls").batch(8)
    iterator = iter(loader)
    next(iterator)
    assert labels(data.DataLoader(loader, batch_size=None, num_workers=2)) == list(range(100))
    assert len(list(iterator)) == 12


@pytest.mark.parametrize("is_persistent", [False, True])
def test_workers_have_another_order_in_each_epoch(urls, is_persistent):
    loader = onecopy.open(urls).shuffle(50).decode().to_tuple("cls").batch(5)
    wrapped = data.DataLoader(
        loader, batch_size=None, num_workers=1, persistent_workers=is_persistent
    )
    epochs = [tuple(label for batch in wrapped for label in batch[0].tolist()) for _ in range(3)]
    assert len(set(epochs)) == 3
    assert {tuple(sorted(epoch)) for epoch in epochs} == {tuple(range(100))}


def test_workers_follow_the_epoch_that_is_set(urls):
    loader = onecopy.open(urls).shuffle(50).decode().to_tuple("cls")
    loader.set_epoch(4)
    wrapped = data.DataLoader(loader, batch_size=None, num_workers=1)
    once, again = list(wrapped), list(wrapped)
    assert once == again
    assert once == [[label] for (label,) in loader]


def test_workers_keep_their_ledgers_to_themselves(urls):
    loader = onecopy.open(urls).decode().to_tuple("cls").batch(8)
    list(data.DataLoader(loader, batch_size=None, num_workers=1))
    with pytest.raises(onecopy.InvalidInputError, match="num_workers=0"):
        _ = loader.ledger
    list(data.DataLoader(loader, batch_size=None, num_workers=0))
    assert loader.ledger["samples"] == 100


def test_errors_of_workers_keep_their_class_and_text(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"cls": b"cat"}})
    wrapped = data.DataLoader(onecopy.open(url).decode(), batch_size=None, num_workers=1)
    with pytest.raises(onecopy.CorruptError, match="cls"):
        list(wrapped)


def test_ranks_do_not_guess_how_many_steps_there_are(urls, monkeypatch):
    import torch.distributed

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    with pytest.raises(onecopy.InvalidInputError, match="onecopy index"):
        iter(onecopy.open(urls))
    # What was said counts more: here every rank reads everything.
    for options in ({"world_size": 1}, {"replicate": 2}):
        assert len(list(onecopy.open(urls, **options))) == 100
