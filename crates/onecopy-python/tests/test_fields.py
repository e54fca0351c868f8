"""Which field becomes what."""

import json

import numpy as np
import pytest

import onecopy
import shards


def test_without_decode_every_field_is_bytes(url):
    samples = list(onecopy.open(url, as_="numpy"))
    assert len(samples) == 10
    shard = samples[3].pop("__shard__")
    assert url.endswith(shard)
    assert samples[3] == {"__key__": "000003", **shards.sample(3)}


def test_decoded_by_name_each_field_has_its_type(url):
    sample = list(onecopy.open(url, as_="numpy").decode("rgb"))[3]
    assert list(sample) == ["__key__", "__shard__", "png", "npy", "cls", "txt", "json", "bin"]
    assert (sample["png"].dtype, sample["png"].shape) == (np.uint8, (3, 8, 6))
    assert sample["npy"].tolist() == [3.0, 3.5, -1.0]
    assert sample["npy"].dtype == np.float32
    assert (type(sample["cls"]), sample["cls"]) == (int, 3)
    assert sample["txt"] == "text 3 ü"
    assert sample["json"] == {"index": 3, "list": [1, None]}
    assert sample["bin"] == b"\x03\x00\xff"


def test_pixels_are_channels_first_over_channels_last_memory(url):
    picture = list(onecopy.open(url, as_="numpy").decode("rgb"))[5]["png"]
    assert picture.strides == (1, 18, 3)
    for y in range(8):
        for x in range(6):
            assert tuple(picture[:, y, x].tolist()) == shards.pixel_at(5, y, x)


@pytest.mark.parametrize("words", [(), ("raw",)])
def test_decode_without_pictures_leaves_them_as_bytes(url, words):
    sample = next(iter(onecopy.open(url, as_="numpy").decode(*words)))
    assert sample["png"] == shards.sample(0)["png"]
    assert sample["cls"] == 0


def test_only_the_fields_that_are_given_are_decoded(url):
    sample = next(iter(onecopy.open(url, as_="numpy").decode(png="rgb", txt="txt")))
    assert sample["png"].shape == (3, 8, 6)
    assert sample["txt"] == "text 0 ü"
    assert (sample["cls"], sample["json"]) == (b"0", shards.sample(0)["json"])


def test_a_field_can_be_decoded_against_its_name(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb", cls="txt", txt="raw", npy="raw")
    sample = list(loader)[4]
    assert (sample["cls"], sample["txt"]) == ("4", "text 4 ü".encode())
    assert sample["npy"] == shards.sample(4)["npy"]
    assert sample["png"].shape == (3, 8, 6)


def test_a_function_decodes_a_field(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb", bin=len, json=lambda data: data[:1])
    sample = next(iter(loader))
    assert (sample["bin"], sample["json"], sample["cls"]) == (3, b"{", 0)


def test_the_last_extension_names_the_decoder(tmp_path):
    fields = {"left.png": shards.png(2, 3), "right.png": shards.png(4, 5), "a.cls": b"7"}
    url = shards.write(tmp_path / "a.tar", {"k": fields})
    sample = next(iter(onecopy.open(url, as_="numpy").decode("rgb")))
    assert (sample["left.png"].shape, sample["right.png"].shape) == ((3, 2, 3), (3, 4, 5))
    assert sample["a.cls"] == 7
    sample = next(iter(onecopy.open(url, as_="numpy").decode(png=len)))
    assert (sample["left.png"], sample["right.png"]) == (
        len(fields["left.png"]),
        len(fields["right.png"]),
    )


def test_npz_becomes_a_dict_of_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.ones((2, 2), np.float32))
    data = (tmp_path / "a.npz").read_bytes()
    url = shards.write(tmp_path / "a.tar", {"a": {"npz": data}, "b": {"npz": data}})
    loader = onecopy.open(url, as_="numpy").decode()
    sample = next(iter(loader))
    assert sorted(sample["npz"]) == ["x", "y"]
    assert sample["npz"]["x"].tolist() == [0, 1, 2]
    (batch,) = loader.to_tuple("npz").batch(2)
    assert batch[0]["x"].shape == (2, 3)
    assert batch[0]["y"].shape == (2, 2, 2)


def test_an_array_without_axes_stays_an_array(tmp_path):
    url = shards.write(tmp_path / "a.tar", {"a": {"npy": shards.npy([5], (), "<i8"), "cls": b"5"}})
    sample = next(iter(onecopy.open(url, as_="numpy").decode()))
    assert (type(sample["npy"]), sample["npy"].shape) == (np.ndarray, ())
    assert type(sample["cls"]) is int


def test_pictures_come_in_the_size_asked_for(url):
    loader = onecopy.open(url, as_="numpy")
    assert next(iter(loader.decode("rgb", size=4)))["png"].shape == (3, 4, 4)
    assert next(iter(loader.decode("rgb", size=(4, 2))))["png"].shape == (3, 4, 2)
    assert next(iter(loader.decode(png="rgb", size=5, fit="stretch")))["png"].shape == (3, 5, 5)


def test_pil_gives_pictures_of_pil(url):
    image = pytest.importorskip("PIL.Image")
    sample = list(onecopy.open(url, as_="numpy").decode("pil"))[2]
    assert isinstance(sample["png"], image.Image)
    assert (sample["png"].size, sample["png"].mode) == ((6, 8), "RGB")
    assert sample["png"].getpixel((5, 1)) == shards.pixel_at(2, 1, 5)
    assert sample["cls"] == 2


def test_tuples_have_the_order_asked_for(url):
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("cls", "__key__", "txt")
    assert list(loader)[6] == (6, "000006", "text 6 ü")


def test_dicts_have_the_fields_asked_for(url):
    loader = onecopy.open(url, as_="numpy").decode()
    assert list(loader.to_dict("txt", "cls"))[1] == {"txt": "text 1 ü", "cls": 1}
    assert list(next(iter(loader.to_dict()))) == list(next(iter(loader)))


def test_alternatives_take_the_first_that_is_there(tmp_path):
    samples = {"a": {"txt": b"one"}, "b": {"text": b"two", "cls": b"1"}}
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy")
    assert list(loader.to_tuple("txt;text", "__key__")) == [(b"one", "a"), (b"two", "b")]


def test_alternatives_are_decoded_by_the_name_that_is_there(tmp_path):
    samples = {"a": {"jpeg": shards.png(2, 2)}, "b": {"png": shards.png(2, 2)}}
    url = shards.write(tmp_path / "a.tar", samples)
    loader = onecopy.open(url, as_="numpy").decode("rgb").to_tuple("png;jpeg")
    assert [picture.shape for (picture,) in loader] == [(3, 2, 2)] * 2


def test_functions_are_found_by_any_alternative(tmp_path):
    samples = {"a": {"jpeg": shards.png(2, 2)}, "b": {"png": shards.png(2, 3)}}
    url = shards.write(tmp_path / "a.tar", samples)
    assert list(onecopy.open(url).decode("rgb", png=len, jpeg=len).to_tuple("png;jpeg")) == [
        (len(samples["a"]["jpeg"]),),
        (len(samples["b"]["png"]),),
    ]


def test_maps_see_what_stands_before_them(url):
    loader = onecopy.open(url, as_="numpy").decode().to_tuple("cls", "txt")
    assert list(loader.map(lambda pair: pair[0] + 1))[:2] == [1, 2]
    doubled = onecopy.open(url).decode().map(lambda s: {"twice": 2 * s["cls"], **s})
    assert list(doubled.to_tuple("twice", "__key__"))[3] == (6, "000003")


def test_json_is_what_pythons_json_makes_of_it(tmp_path):
    texts = [b"1", b'"a"', b"[]", b"null", b'{"a": 1.5}', json.dumps({"n": [1e300]}).encode()]
    texts += [b"[Infinity, -Infinity]", b'"\\ud800"', b'"\xed\xa0\x80"', b'{"a": 1, "a": 2}']
    texts += ['{"ü": 1}'.encode(code) for code in ("utf-8-sig", "utf-16", "utf-16-be", "utf-32")]
    texts += [b"9" * 4300, b"[" * 800 + b"]" * 800]
    url = shards.write(tmp_path / "a.tar", {str(at): {"json": t} for at, t in enumerate(texts)})
    values = [value for (value,) in onecopy.open(url).decode().to_tuple("json")]
    assert values == [json.loads(text) for text in texts]


def test_no_member_stands_in_for_the_key_or_the_shard(tmp_path):
    url = shards.write(
        tmp_path / "a.tar", {"a": {"__key__": b"evil", "__shard__": b"x", "txt": b"t"}}
    )
    (sample,) = onecopy.open(url)
    assert (sample["__key__"], sample["txt"]) == ("a", b"t")
    assert sample["__shard__"].endswith("a.tar")
