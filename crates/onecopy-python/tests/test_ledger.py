"""The ledger, as Python sees it."""

import json
import os
from pathlib import Path

import pytest

import onecopy


def test_counts_what_was_read_and_given(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("png", "cls").batch(4)
    list(loader)
    ledger = loader.ledger
    assert ledger["schema"] == 1
    assert ledger["version"] == onecopy.__version__
    assert (ledger["samples"], ledger["batches"]) == (10, 3)
    assert (ledger["route"], ledger["device"], ledger["urls"]) == ("stream", "cpu", url)
    size = Path(url.removeprefix("file://")).stat().st_size
    assert ledger["payload_bytes"] == size
    assert ledger["copies_per_byte"]["cpu"] == pytest.approx(1.0)
    assert ledger["copies_per_byte"]["user"] == 0.0
    read = next(hop for hop in ledger["hops"] if hop["hop"] == "read")
    assert (read["bytes"], read["evidence"]) == (size, "counted")


def test_has_one_form_as_mapping_dict_and_json(url):
    loader = onecopy.open(url, as_="numpy").batch(4)
    list(loader)
    ledger = loader.ledger
    assert dict(ledger) == ledger.to_dict() == json.loads(ledger.to_json())
    assert len(ledger) == len(list(ledger))
    assert "hops" in ledger
    assert "nonsense" not in ledger


def test_is_a_map_as_text(url):
    loader = onecopy.open(url, as_="numpy")
    list(loader)
    text = str(loader.ledger)
    assert "copies per byte" in text
    assert url in text


def test_is_of_the_moment_it_is_asked_for(url):
    loader = onecopy.open(url, as_="numpy")
    iterator = iter(loader)
    next(iterator)
    early = loader.ledger
    list(iterator)
    assert (early["samples"], loader.ledger["samples"], iterator.ledger["samples"]) == (1, 10, 10)
    list(loader)
    assert loader.ledger["samples"] == 10


def test_says_that_python_objects_are_copies(url):
    loader = onecopy.open(url, as_="numpy")
    list(loader)
    hops = {hop["hop"]: hop for hop in loader.ledger["hops"]}
    assert hops["to_python"]["kind"] == "copy"
    assert hops["to_python"]["bytes"] == sum(
        len(value) for sample in loader for value in sample.values() if isinstance(value, bytes)
    )
    tensors = loader.decode("rgb").to_tuple("png", "cls")
    list(tensors)
    assert "to_python" not in {hop["hop"] for hop in tensors.ledger["hops"]}


def test_says_which_wish_was_not_granted(url):
    loader = onecopy.open(url, as_="numpy", route="direct")
    list(loader)
    (fallback,) = loader.ledger["fallbacks"]
    assert (fallback["wanted"], fallback["used"]) == ("direct", "stream")


def test_is_not_there_before_the_first_iteration(url):
    loader = onecopy.open(url, as_="numpy")
    with pytest.raises(onecopy.InvalidInputError, match="ledger") as caught:
        _ = loader.ledger
    assert "num_workers=0" in caught.value.help


def test_counts_batches_whoever_makes_them(url):
    loader = onecopy.open(url, as_="numpy").decode().to_tuple("cls")
    list(loader)
    assert (loader.ledger["samples"], loader.ledger["batches"]) == (10, 0)
    same = loader.map(lambda sample: sample)
    for drop_last, batches in ((False, 3), (True, 2)):
        made = same.batch(4, drop_last=drop_last)
        list(made)
        assert (made.ledger["samples"], made.ledger["batches"]) == (10, batches)


def test_is_of_this_process_alone(url):
    loader = onecopy.open(url, as_="numpy")
    list(loader)
    child = os.fork()
    if child == 0:
        try:
            _ = loader.ledger
        except onecopy.InvalidInputError:
            os._exit(7)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert loader.ledger["samples"] == 10
