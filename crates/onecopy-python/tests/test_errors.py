"""Bad input: each error says what, where and what to do."""

import logging
import pickle
import threading
from pathlib import Path

import pytest

import onecopy
import shards
from onecopy import errors


def all_of(url, **options):
    return list(onecopy.open(url, as_="numpy", **options).decode("rgb").batch(4))


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(onecopy.NotFoundError, match=r"gone\.tar") as caught:
        all_of(f"file://{tmp_path}/gone.tar")
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.kind == "not_found"
    assert caught.value.doing
    assert "gone.tar" in caught.value.target
    assert caught.value.why in str(caught.value)


def test_what_is_no_tar_is_corrupt(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(b"<html>" + b"x" * 2000)
    with pytest.raises(onecopy.CorruptError, match=r"a\.tar") as caught:
        all_of(f"file://{path}")
    assert isinstance(caught.value, ValueError)


def test_a_cut_shard_is_truncated(url):
    path = Path(url.removeprefix("file://"))
    data = path.read_bytes()
    path.write_bytes(data[:700])
    with pytest.raises(onecopy.TruncatedError, match=r"ten\.tar"):
        all_of(url)


def test_good_samples_come_before_the_error(url):
    path = Path(url.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[: 3 * 6 * 1024 + 700])
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("cls")
    got = []
    with pytest.raises(onecopy.Error):
        got.extend(cls for (cls,) in loader)
    iterator = iter(loader)
    for (cls,) in (next(iterator) for _ in range(2)):
        got.append(cls)
    assert got == [0, 1, 2, 0, 1]


@pytest.fixture
def gapped(tmp_path):
    """Ten samples, of which number 3 has no ``cls``."""
    samples = {f"{at:06d}": shards.sample(at) for at in range(10)}
    del samples["000003"]["cls"]
    return shards.write(tmp_path / "gapped.tar", samples)


def test_a_missing_field_names_sample_shard_and_what_is_there(gapped):
    loader = onecopy.open(gapped, as_="numpy").decode().to_tuple("cls", "txt").batch(4)
    with pytest.raises(onecopy.NotFoundError, match="cls") as caught:
        list(loader)
    text = str(caught.value)
    assert "000003" in text
    assert "gapped.tar" in text
    assert "npy" in text
    assert "\nhelp: " in text
    assert caught.value.help in text


def test_skipped_samples_are_counted_and_batches_stay_full(gapped):
    loader = onecopy.open(gapped, as_="numpy", on_error="skip").decode().to_tuple("cls").batch(3)
    assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2], [4, 5, 6], [7, 8, 9]]
    assert loader.ledger["skipped"] == {"samples": 1, "shards": 0, "by_cause": {"not_found": 1}}


def test_warnings_reach_the_logger(gapped, caplog):
    loader = onecopy.open(gapped, as_="numpy", on_error="warn").decode().to_tuple("cls")
    with caplog.at_level(logging.WARNING, logger="onecopy"):
        assert len(list(loader)) == 9
    assert len(caplog.records) == 1
    message = caplog.records[0].message
    assert message.startswith("sample left out (not_found): ")
    assert "000003" in message
    assert "\n" not in message
    assert loader.ledger["skipped"]["samples"] == 1


CUTS = {
    0: ([], onecopy.CorruptError, "empty", (0, 1), 1),
    511: ([], onecopy.TruncatedError, "header is cut: 511 of 512", (0, 1), 1),
    512: ([], onecopy.TruncatedError, "is cut: 0 of 600", (1, 1), 2),
    1535: (["a"], onecopy.TruncatedError, "padding of a member is cut", (0, 1), 1),
    1536: (["a"], onecopy.TruncatedError, "end-of-archive mark", (0, 0), 1),
}


@pytest.mark.parametrize("cut", CUTS)
def test_shards_stored_cut_are_told_or_counted_and_logged(tmp_path, caplog, cut):
    keys, error, text, lost, lines = CUTS[cut]
    shard = tmp_path / "a.tar"
    shards.write(shard, {"a": {"txt": b"x" * 600}})
    shard.write_bytes(shard.read_bytes()[:cut])
    with pytest.raises(error, match=text) as caught:
        list(onecopy.open(shard))
    assert "a.tar" in str(caught.value)
    assert caught.value.help
    for policy in ["skip", "warn"]:
        caplog.clear()
        loader = onecopy.open(shard, on_error=policy)
        with caplog.at_level(logging.WARNING, logger="onecopy"):
            assert [sample["__key__"] for sample in loader] == keys
        skipped = loader.ledger["skipped"]
        assert (skipped["samples"], skipped["shards"]) == lost
        assert sum(skipped["by_cause"].values()) == sum(lost)
        assert loader.ledger["warnings"] == ({"missing_eof": 1} if cut == 1536 else {})
        assert len(caplog.records) == (lines if policy == "warn" else 0)


def test_pictures_that_do_not_decode_name_field_and_sample(tmp_path):
    samples = {f"{at}": {"png": shards.png(4, 4, at), "cls": b"%d" % at} for at in range(5)}
    samples["2"]["png"] = b"no picture at all"
    url = shards.write(tmp_path / "a.tar", samples)
    with pytest.raises(onecopy.Error, match="png") as caught:
        all_of(url)
    assert "a.tar" in str(caught.value)
    assert '"2"' in str(caught.value)
    loader = onecopy.open(url, as_="numpy", on_error="skip").decode("rgb").to_tuple("png", "cls")
    assert [batch[1].tolist() for batch in loader.batch(2)] == [[0, 1], [3, 4]]


def test_object_arrays_are_never_unpickled(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"npy": shards.npy([0] * 8, (1,), "|O")}})
    with pytest.raises(onecopy.Error, match="object"):
        all_of(url)


def test_unequal_pictures_say_what_to_do(tmp_path):
    samples = {f"{at}": {"png": shards.png(4, 4 + at % 2)} for at in range(4)}
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("png")
    with pytest.raises(onecopy.InvalidInputError, match="size=224"):
        list(loader.batch(4))
    assert [picture.shape[2] for (picture,) in loader] == [4, 5, 4, 5]
    with pytest.raises(onecopy.InvalidInputError, match="one size"):
        list(loader.map(lambda sample: sample).batch(4))
    skipping = onecopy.open(url, as_="numpy", on_error="skip").decode("rgb").to_tuple("png")
    made = skipping.map(lambda sample: sample).batch(4)
    assert [len(batch) for (batch,) in made] == [2]
    assert made.ledger["skipped"] == {"samples": 2, "shards": 0, "by_cause": {"invalid_input": 2}}


def test_numbers_that_are_none_are_corrupt(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"cls": b"cat"}})
    with pytest.raises(onecopy.CorruptError, match="cls"):
        all_of(url)


def test_json_that_is_none_is_corrupt(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"json": b"{"}, "b": {"json": b"1"}})
    with pytest.raises(onecopy.CorruptError, match="json"):
        all_of(url)
    loader = onecopy.open(url, on_error="skip").decode().to_tuple("json")
    assert list(loader) == [(1,)]
    assert loader.ledger["skipped"]["samples"] == 1


def test_json_that_is_none_leaves_batches_full(tmp_path):
    texts = [b"0", b"[1,]", b"2", b"[3]", b"}", b""]
    samples = {f"{at}": {"json": text, "cls": b"%d" % at} for at, text in enumerate(texts)}
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy", on_error="skip").decode().to_tuple("json", "cls")
    batches = loader.batch(2)
    assert [(values, labels.tolist()) for values, labels in batches] == [
        ([0, 2], [0, 2]),
        ([[3]], [3]),
    ]
    assert batches.ledger["skipped"] == {"samples": 3, "shards": 0, "by_cause": {"corrupt": 3}}
    with pytest.raises(onecopy.CorruptError, match="at byte 3") as caught:
        list(onecopy.open(url).decode().batch(4))
    assert all(part in str(caught.value) for part in ['"json"', '"1"', "a.tar"])


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 901 + b"]" * 901,
        b"9" * 4301,
    ],
    ids=["deep", "long"],
)
def test_json_beyond_the_limits_is_left_out_like_any_other(tmp_path, text):
    samples = {f"{at}": {"json": b"%d" % at} for at in range(5)}
    samples["2"]["json"] = text
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, on_error="skip").decode().to_tuple("json").batch(2)
    assert [values for (values,) in loader] == [[0, 1], [3, 4]]
    assert loader.ledger["skipped"] == {"samples": 1, "shards": 0, "by_cause": {"limit_reached": 1}}


@pytest.mark.parametrize("is_in_python", [False, True])
@pytest.mark.parametrize(
    ("widths", "kept"),
    [
        ("5444444", [[1, 2, 3], [4, 5, 6]]),
        ("4454444", [[0, 1, 3], [4, 5, 6]]),
        ("4445444", [[0, 1, 2], [4, 5, 6]]),
        ("444555", [[0, 1, 2], [3, 4, 5]]),
        ("4445", [[0, 1, 2]]),
        ("5", [[0]]),
        ("54", [[0]]),
    ],
)
def test_the_odd_picture_is_the_one_that_is_left_out(tmp_path, widths, kept, is_in_python):
    samples = {
        f"{at}": {"png": shards.png(4, int(width)), "cls": b"%d" % at}
        for at, width in enumerate(widths)
    }
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy", on_error="skip").decode("rgb").to_tuple("png", "cls")
    if is_in_python:
        loader = loader.map(lambda sample: sample)
    loader = loader.batch(3)
    assert [labels.tolist() for _, labels in loader] == kept
    assert loader.ledger["skipped"]["samples"] == len(widths) - sum(map(len, kept))


@pytest.mark.parametrize(
    ("widths", "kept"),
    [
        # Three in a row are a change for good; engine and Python lose what they must to see it.
        ("4444555555", [[0, 1, 2], [3], [7, 8, 9]]),
        ("5678912344", [[8, 9]]),
    ],
)
def test_data_that_change_in_python_lose_no_more_than_a_batch(tmp_path, widths, kept):
    samples = {
        f"{at:02}": {"png": shards.png(4, int(width)), "cls": b"%d" % at}
        for at, width in enumerate(widths)
    }
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy", on_error="skip").decode("rgb").to_tuple("png", "cls")
    loader = loader.map(lambda sample: sample).batch(3)
    assert [labels.tolist() for _, labels in loader] == kept


def test_decoding_functions_that_fail_name_the_field_and_can_be_skipped(url, caplog):
    def odd(data):
        if data[0] % 2 == 0:
            raise KeyError(data[0])
        return data[0]

    loader = onecopy.open(url, as_="numpy").decode(bin=odd).to_tuple("bin")
    with pytest.raises(onecopy.CorruptError, match="'bin'") as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "000000" in str(caught.value)
    loader = (
        onecopy.open(url, as_="numpy", on_error="warn").decode(bin=odd).to_tuple("bin").batch(3)
    )
    with caplog.at_level(logging.WARNING, logger="onecopy"):
        assert [batch.tolist() for (batch,) in loader] == [[1, 3, 5], [7, 9]]
    assert len(caplog.records) == 5
    for record in caplog.records:
        assert record.message.startswith("sample left out (corrupt): ")
        assert "\n" not in record.message
    assert loader.ledger["skipped"] == {"samples": 5, "shards": 0, "by_cause": {"corrupt": 5}}


def test_errors_of_maps_come_through_whatever_on_error_says(url):
    loader = onecopy.open(url, as_="numpy", on_error="skip").map(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(loader)


@pytest.mark.parametrize("is_batched", [False, True])
def test_a_map_that_stops_is_an_error_and_no_end(url, is_batched):
    loader = onecopy.open(url, as_="numpy").map(lambda _: next(iter([])))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loader.batch(2) if is_batched else loader)


def test_threads_that_share_an_iterator_take_turns(url):
    taken = []
    iterator = iter(onecopy.open(url, as_="numpy").map(lambda sample: sample["__key__"]))
    threads = [threading.Thread(target=lambda: taken.extend(iterator)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(sample["__key__"] for sample in onecopy.open(url))


def test_errors_show_no_value_of_a_wrong_type():
    for urls in [b"http://h/x?X-Amz-Signature=SECRET", [["http://h/x?sig=SECRET"]]]:
        with pytest.raises(onecopy.InvalidTypeError) as caught:
            onecopy.open(urls)
        assert "SECRET" not in str(caught.value)


def test_fields_of_what_has_no_names_are_refused(url):
    loader = onecopy.open(url, as_="numpy").map(lambda sample: sample["cls"])
    with pytest.raises(onecopy.InvalidInputError, match="no names"):
        list(loader.to_tuple("cls"))
    loader = onecopy.open(url, as_="numpy").map(lambda sample: {"a": sample["cls"]})
    with pytest.raises(onecopy.NotFoundError, match="only a"):
        list(loader.to_tuple("cls"))


def test_after_an_error_an_iterator_is_at_its_end(tmp_path):
    iterator = iter(
        onecopy.open(
            shards.write(tmp_path / "a.tar", {"a": {"cls": b"cat"}, "b": {"cls": b"1"}})
        ).decode()
    )
    with pytest.raises(onecopy.CorruptError):
        next(iterator)
    assert list(iterator) == []


@pytest.mark.parametrize("kind", sorted(errors._BY_KIND))  # noqa: SLF001
def test_every_error_can_be_pickled_and_made_from_a_text(kind):
    error = errors.from_engine(kind, "could not a b: c\nhelp: d", "a", "b", "c", "d")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again)) == (type(error), str(error))
    assert (again.kind, again.doing, again.target, again.why, again.help) == (
        kind,
        "a",
        "b",
        "c",
        "d",
    )
    assert str(type(error)("text")) == "text"


def help_of(url, **options):
    with pytest.raises(onecopy.Error) as caught:
        list(onecopy.open(url, as_="numpy", **options).batch(4))
    assert caught.value.help is not None
    assert "--" not in caught.value.help
    assert str(caught.value).endswith(f"\nhelp: {caught.value.help}")
    return caught.value.help


def test_help_speaks_of_arguments_and_not_of_flags(url, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    help_ = help_of("s3://bucket/a.tar", endpoint_url="http://127.0.0.1:1")
    assert "`profile`" in help_
    assert "no_sign_request=True" in help_
    path = Path(url.removeprefix("file://"))
    data = bytearray(path.read_bytes())
    data[1024] ^= 1  # the name of the second member
    path.write_bytes(data)
    assert 'on_error="skip"' in help_of(url)
    assert "gs://" in help_of("ftp://bucket/a.tar")
    assert help_of("pipe:aws s3 cp s3://bucket/a.tar -").endswith(": s3://bucket/a.tar")


@pytest.mark.parametrize("device", ["gpu", "cuda", "cuda:1", "mps", "tpu"])
def test_other_devices_are_refused_with_what_to_do(url, device):
    with pytest.raises(onecopy.Error, match=device) as caught:
        onecopy.open(url).to(device)
    assert 'to("cpu")' in caught.value.help
    kind = onecopy.InvalidInputError if device == "tpu" else onecopy.UnsupportedError
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda loader: loader.batch(0), "it is less than 1"),
        (lambda loader: loader.batch(2**64), "it is too large"),
        (lambda loader: loader.shuffle(-1), "it is negative"),
        (lambda loader: loader.decode("rgb", size=2**17), "it is more than 65536"),
        (lambda loader: loader.batch(2).batch(2), "batches are made already"),
        (lambda loader: loader.batch(2).shuffle(2), "it comes after batch()"),
    ],
)
def test_what_cannot_be_is_said_in_plain_words(url, call, why):
    with pytest.raises(onecopy.InvalidInputError) as caught:
        call(onecopy.open(url))
    assert caught.value.why == why


def test_an_object_that_is_gone_is_read_by_nobody(tmp_path):
    loader = onecopy.open(str(tmp_path / "a.tar"), as_="numpy")
    with pytest.raises(onecopy.NotFoundError) as caught:
        list(loader)
    assert "bytes" not in str(caught.value)
