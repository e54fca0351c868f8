"""Batches: their shapes, their memory, and who makes them."""

import numpy as np
import pytest

import onecopy
import shards


def test_columns_are_stacked_or_listed(url):
    batches = list(onecopy.open(url, as_="numpy").decode("rgb").batch(4))
    assert [len(batch["__key__"]) for batch in batches] == [4, 4, 2]
    batch = batches[1]
    assert batch["__key__"] == ["000004", "000005", "000006", "000007"]
    assert all(url.endswith(shard) for shard in batch["__shard__"])
    assert (batch["png"].dtype, batch["png"].shape) == (np.uint8, (4, 3, 8, 6))
    assert (batch["cls"].dtype, batch["cls"].tolist()) == (np.int64, [4, 5, 6, 7])
    assert batch["npy"].tolist() == [[i, i + 0.5, -1.0] for i in range(4, 8)]
    assert batch["txt"] == [f"text {i} ü" for i in range(4, 8)]
    assert batch["json"][0] == {"index": 4, "list": [1, None]}
    assert batch["bin"] == [bytes([i, 0, 255]) for i in range(4, 8)]


def test_a_last_batch_that_is_not_full_is_dropped_when_asked(url):
    loader = onecopy.open(url, as_="numpy").decode().to_tuple("cls")
    assert [b.tolist() for (b,) in loader.batch(4, drop_last=True)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    assert [len(b) for (b,) in loader.batch(4)] == [4, 4, 2]
    assert [len(b) for (b,) in loader.batch(100)] == [10]


def test_pictures_are_channels_last_in_memory_that_begins_on_a_page(url):
    (batch, *_) = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("png").batch(4)
    assert batch[0].strides == (8 * 6 * 3, 1, 18, 3)
    assert batch[0].ctypes.data % 4096 == 0
    for at in range(4):
        assert tuple(batch[0][at, :, 7, 5].tolist()) == shards.pixel_at(at, 7, 5)


def test_a_list_of_all_batches_keeps_every_one_valid(tmp_path):
    url = shards.write(
        tmp_path / "a.tar",
        {f"{at:04d}": {"npy": shards.npy([at] * 4096, (4096,))} for at in range(400)},
    )
    loader = onecopy.open(url, memory="16MiB", as_="numpy").decode().to_tuple("npy").batch(50)
    batches = list(loader)
    assert len({batch.ctypes.data for (batch,) in batches}) == 8
    for at, (batch,) in enumerate(batches):
        assert (batch == np.arange(50 * at, 50 * (at + 1))[:, None]).all()


def test_batches_may_be_written(url):
    (batch, *_) = onecopy.open(url, as_="numpy").decode().to_tuple("npy").batch(2)
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("numpy before 2.1 takes the old capsule, whose arrays it makes read-only")
    batch[0][:] = 7
    assert batch[0].tolist() == [[7.0] * 3] * 2


def test_a_function_before_batch_sees_samples_and_one_after_it_sees_batches(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("png", "cls", "txt", "npy")
    before = loader.map(lambda s: (s[0], s[1] * 2, s[2], {"npy": s[3]}, s[1] / 2)).batch(4)
    images, labels, texts, more, halves = next(iter(before))
    assert (images.shape, images.strides) == ((4, 3, 8, 6), (144, 1, 18, 3))
    assert (labels.dtype, labels.tolist()) == (np.int64, [0, 2, 4, 6])
    assert (halves.dtype, halves.tolist()) == (np.float64, [0.0, 0.5, 1.0, 1.5])
    assert (more["npy"].dtype, more["npy"].shape) == (np.float32, (4, 3))
    assert texts == [f"text {i} ü" for i in range(4)]
    assert any("in Python" in note for note in before.ledger["notes"])
    after = loader.batch(4).map(lambda batch: batch[1].sum())
    assert list(after) == [6, 22, 17]
    assert not any("in Python" in note for note in after.ledger["notes"])


def test_python_and_engine_make_the_same_batches(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb")
    engine = list(loader.batch(4))
    python = list(loader.map(lambda sample: sample).batch(4))
    assert [list(batch) for batch in engine] == [list(batch) for batch in python]
    for one, other in zip(engine, python, strict=True):
        for name, value in one.items():
            assert np.array_equal(np.asarray(value), np.asarray(other[name])), name


def test_functions_that_decode_are_batched_too(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb", bin=lambda data: data[0])
    batches = list(loader.to_tuple("bin", "cls").batch(3, drop_last=True))
    assert [batch[0].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_named_tuples_stay_named(url):
    from collections import namedtuple

    pair = namedtuple("pair", "key cls")  # noqa: PYI024 - as users write them
    loader = onecopy.open(url, as_="numpy").decode()
    batch = next(iter(loader.map(lambda s: pair(s["__key__"], s["cls"])).batch(2)))
    assert (batch.key, batch.cls.tolist()) == (["000000", "000001"], [0, 1])
