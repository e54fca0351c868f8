"""The chain is lazy, plain and checked step by step."""

import copy
import os
import pathlib
import pickle
import shutil

import pytest

import onecopy
from onecopy import InvalidInputError, InvalidTypeError, UnsupportedError

NOWHERE = "file:///nowhere/a.tar"


def test_steps_give_new_loaders_and_read_nothing(url):
    plain = onecopy.open(url, as_="numpy")
    decoded = plain.decode("rgb")
    assert decoded is not plain
    assert isinstance(next(iter(plain))["cls"], bytes)
    assert isinstance(next(iter(decoded))["cls"], int)
    onecopy.open(NOWHERE).shuffle(10).decode("rgb").to_tuple("jpg").batch(3).to("cpu")


def test_loaders_can_be_iterated_again_and_side_by_side(url):
    loader = onecopy.open(url, as_="numpy").decode().to_tuple("cls")
    assert list(loader) == list(loader)
    assert [a == b for a, b in zip(loader, loader, strict=True)] == [True] * 10


def pickled(loader):
    return pickle.loads(pickle.dumps(loader))  # noqa: S301


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_loaders_can_be_copied_and_pickled_even_while_they_run(url, again):
    loader = onecopy.open(url, as_="numpy").decode(bin=len).map(len).batch(2)
    iterator = iter(loader)
    next(iterator)
    assert [batch.tolist() for batch in again(loader)] == [[8, 8]] * 5
    iterator.close()


def test_repr_tells_the_chain():
    loader = onecopy.open(NOWHERE).shuffle(9, seed=2).decode("rgb").map(len).to_tuple("a").batch(3)
    assert repr(loader) == (
        "<onecopy.open('file:///nowhere/a.tar').shuffle(9, seed=2).decode(..).map(len)"
        ".to_tuple('a').batch(3, tail='short').to('cpu')>"
    )
    assert "100 in all" in repr(onecopy.open(["a.tar"] * 100))


def test_urls_may_be_paths(url):
    path = url.removeprefix("file://")
    for form in (path, pathlib.Path(path), [url], (pathlib.Path(path), url), {url: 1}.keys()):
        assert len(list(onecopy.open(form, as_="numpy"))) in {10, 20}


def test_paths_need_not_be_text(url, tmp_path, monkeypatch):
    path = os.fsencode(tmp_path) + b"/\xff{a}%20 *.tar"
    shutil.copy(url.removeprefix("file://"), path)
    inside = b"\xff{a}%20 *.tar"
    forms = [path, os.fsdecode(path), pathlib.Path(os.fsdecode(path)), b"file://" + path, [path]]
    for form in forms:
        assert len(list(onecopy.open(form, as_="numpy"))) == 10
    monkeypatch.chdir(tmp_path)
    assert len(list(onecopy.open(inside, as_="numpy"))) == 10
    # A pattern stays one.
    folder = os.fsencode(tmp_path) + b"/\xfe/"
    pathlib.Path(os.fsdecode(folder)).mkdir()
    for name in (b"a.tar", b"b.tar"):
        shutil.copy(path, folder + name)
    for form in (folder, folder + b"*.tar", folder + b"{a,b}.tar"):
        assert len(list(onecopy.open(form, as_="numpy"))) == 20


def test_the_folder_of_a_relative_path_is_no_pattern(url, tmp_path, monkeypatch):
    folder = tmp_path / "[odd] {1,2}*\\?"
    folder.mkdir()
    monkeypatch.chdir(folder)
    pathlib.Path(os.fsdecode(b"\xfe")).mkdir()
    for name in (b"\xff.tar", b"[1]\xff.tar", b"\xfe/a.tar", b"\xfe/b.tar"):
        shutil.copy(url.removeprefix("file://"), name)
    for form in (b"\xff.tar", b"[1]\xff.tar"):
        assert len(list(onecopy.open(form, as_="numpy"))) == 10
    for form in (b"\xfe/", b"\xfe/*.tar", b"\xfe/{a,b}.tar"):
        assert len(list(onecopy.open(form, as_="numpy"))) == 20


WRONG_VALUES = {
    "urls": [[], "", [""], b"", "s3://b/\udcff", "\ud800", ["a", "s3://\udc80"]],
    "memory": ["lots", "2 apples", 0, -1, "0", "1\udcff"],
    "route": ["teleport", "Stream"],
    "require": ["auto", "teleport"],
    "on_error": ["ignore", ""],
    "connections": [0, -1],
    "decode_threads": [0, -2],
    "key_rule": ["second-dot"],
    "duplicates": ["merge"],
    "request_payer": ["me"],
    "addressing_style": ["sideways", ""],
    "sse_c_key": ["", b""],
    "endpoint_url": ["", "http://\udcff"],
    "region": ["", "\udcff"],
    "profile": ["", "\ud800"],
    "ca_bundle": ["", b"/\xff"],
    "as_": ["tensorflow", ""],
}

WRONG_TYPES = {
    "urls": [3, b"https://h/\xff", b"s3://b/k", bytearray(b"a.tar"), None, [3]],
    "memory": [2.5, True, []],
    "route": [None, 1],
    "on_error": [None, True],
    "connections": ["8", 1.0, True],
    "decode_threads": ["8", False],
    "no_sign_request": [1, "yes", None],
    "no_verify_ssl": [0],
    "addressing_style": [1],
    "sse_c_key": [1, [b"x"]],
    "no_verify_checksum": [1, "yes"],
    "endpoint_url": [1],
    "ca_bundle": [1],
    "key_rule": [None],
    "duplicates": [1],
    "as_": [1],
}


def cases(table):
    return [(option, value) for option, values in table.items() for value in values]


@pytest.mark.parametrize(("option", "value"), cases(WRONG_VALUES))
def test_a_wrong_value_of_open_is_refused_at_once_by_name(option, value):
    options = {"urls": NOWHERE, option: value}
    with pytest.raises(InvalidInputError, match=option) as caught:
        onecopy.open(**options)
    assert isinstance(caught.value, ValueError)
    assert caught.value.help, "what to do is said"


@pytest.mark.parametrize(("option", "value"), cases(WRONG_TYPES))
def test_a_wrong_type_of_open_is_a_type_error_too(option, value):
    options = {"urls": NOWHERE, option: value}
    with pytest.raises(InvalidTypeError, match=option) as caught:
        onecopy.open(**options)
    assert isinstance(caught.value, TypeError)


def test_a_key_is_never_shown():
    for key in ("hush-hush", b"hush-hush", "file:///hush-hush"):
        loader = onecopy.open("s3://bucket/a.tar", sse_c_key=key, as_="numpy")
        assert "hush" not in repr(loader)
        with pytest.raises(onecopy.Error) as caught:
            next(iter(loader))
        assert "hush-hush" not in str(caught.value).replace("/hush-hush", "")
    with pytest.raises(InvalidTypeError) as caught:
        onecopy.open(NOWHERE, sse_c_key=["hush-hush"])
    assert "hush" not in str(caught.value)


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="conections"):
        onecopy.open(NOWHERE, conections=3)
    with pytest.raises(TypeError):
        onecopy.open(NOWHERE, "us-east-1")


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (lambda loader: loader.shuffle(-1), "capacity"),
        (lambda loader: loader.shuffle("10"), "capacity"),
        (lambda loader: loader.shuffle(10, seed=-1), "seed"),
        (lambda loader: loader.shuffle(10, seed=2**64), "seed"),
        (lambda loader: loader.batch(0), "size"),
        (lambda loader: loader.batch(2.0), "size"),
        (lambda loader: loader.batch(2, drop_last=1), "drop_last"),
        (lambda loader: loader.batch(2).batch(2), "batch"),
        (lambda loader: loader.batch(2).shuffle(2), "shuffle"),
        (lambda loader: loader.batch(2).decode(), "decode"),
        (lambda loader: loader.map(len).decode(), "decode"),
        (lambda loader: loader.map(3), "function"),
        (lambda loader: loader.decode("bgr"), "pictures"),
        (lambda loader: loader.decode(jpg="bgr"), "jpg"),
        (lambda loader: loader.decode(jpg=3), "jpg"),
        (lambda loader: loader.decode("rgb", size=0), "size"),
        (lambda loader: loader.decode("rgb", size=(1, 2, 3)), "size"),
        (lambda loader: loader.decode("rgb", size="224"), "size"),
        (lambda loader: loader.decode("rgb", size=2**20), "size"),
        (lambda loader: loader.decode("pil", size=224), "size"),
        (lambda loader: loader.decode("rgb", size=224, fit="squeeze"), "fit"),
        (lambda loader: loader.to_tuple(), "names"),
        (lambda loader: loader.to_tuple("jpg", 3), "names"),
        (lambda loader: loader.to_dict(""), "names"),
        (lambda loader: loader.to("tpu"), "tpu"),
        (lambda loader: loader.to(3), "device"),
        (lambda loader: loader.to("cpu", as_="cupy"), "as_"),
        (lambda loader: loader.set_epoch(-1), "epoch"),
        (lambda loader: loader.set_epoch("1"), "epoch"),
    ],
)
def test_a_wrong_step_is_refused_at_once_by_name(step, named):
    with pytest.raises(InvalidInputError, match=named):
        step(onecopy.open(NOWHERE, as_="numpy"))


@pytest.mark.parametrize(
    "use",
    [
        lambda: onecopy.open(NOWHERE, cache="/nvme"),
        lambda: onecopy.open(NOWHERE, cache_size="500GB"),
        lambda: onecopy.open(NOWHERE).to("cuda:0"),
        lambda: next(iter(onecopy.open(NOWHERE, require="direct"))),
    ],
)
def test_what_comes_later_says_so(use):
    with pytest.raises(UnsupportedError, match="this version") as caught:
        use()
    assert isinstance(caught.value, NotImplementedError)
    assert caught.value.help


def test_a_route_and_another_required_contradict_each_other():
    with pytest.raises(InvalidInputError, match="require"):
        onecopy.open(NOWHERE, route="stream", require="direct")


def test_a_missing_library_is_named(monkeypatch):
    import sys

    from onecopy import _arrays

    monkeypatch.setitem(sys.modules, "jax", None)
    _arrays._named.cache_clear()  # noqa: SLF001
    with pytest.raises(UnsupportedError, match="pip install jax"):
        onecopy.open(NOWHERE, as_="jax")
    _arrays._named.cache_clear()  # noqa: SLF001


def test_numpy_is_taken_where_torch_is_missing(url, monkeypatch):
    import sys

    import numpy as np

    from onecopy import _arrays

    monkeypatch.setitem(sys.modules, "torch", None)
    _arrays._has_torch.cache_clear()  # noqa: SLF001
    sample = next(iter(onecopy.open(url).decode()))
    assert isinstance(sample["npy"], np.ndarray)
    _arrays._has_torch.cache_clear()  # noqa: SLF001
