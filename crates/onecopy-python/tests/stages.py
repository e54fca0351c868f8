"""Shards with one odd sample each, by the stage that finds it, and loaders that come across it."""

import pytest

import onecopy
import shards


def odd(data):
    """Decode a field, unless it begins with a 2."""
    if data[:1] == b"2":
        raise KeyError("odd")
    return int(data)


def samples(**odd_one):
    """Return five samples, of which the third has other fields."""
    made = {f"{at}": {"cls": b"%d" % at, "npy": shards.npy([at], (1,))} for at in range(5)}
    made["2"] = {name: data for name, data in {**made["2"], **odd_one}.items() if data is not None}
    return made


def plain(url, **options):
    """Return what the engine batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode()
    return loader.to_tuple("cls", "npy").batch(3)


def by_function(url, **options):
    """Return what a function decodes, and Python batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode().decode(cls=odd)
    return loader.to_tuple("cls", "npy").batch(3)


def by_map(url, **options):
    """Return what a function makes of dicts, and Python batches."""
    loader = onecopy.open(url, as_="numpy", **options).decode()
    return loader.map(lambda sample: sample).batch(3).to_tuple("cls", "npy")


STAGES = {
    "read": (plain, {"CLS": b"2"}, onecopy.CorruptError, "duplicate_field", (1, 0)),
    "pick": (plain, {"cls": None}, onecopy.NotFoundError, "not_found", (1, 0)),
    "lay": (
        plain,
        {"npy": shards.npy([1, 2], (2,))},
        onecopy.InvalidInputError,
        "invalid_input",
        (1, 0),
    ),
    "decode": (plain, {"cls": b"cat"}, onecopy.CorruptError, "corrupt", (1, 0)),
    "function": (by_function, {}, onecopy.CorruptError, "corrupt", (1, 0)),
    "collate": (
        by_map,
        {"npy": shards.npy([1, 2], (2,))},
        onecopy.InvalidInputError,
        "invalid_input",
        (1, 0),
    ),
    "cut": (plain, {}, onecopy.TruncatedError, "truncated", (1, 1)),
    "gone": (plain, {}, onecopy.NotFoundError, "not_found", (0, 1)),
}

stages = pytest.mark.parametrize("stage", STAGES)


def write(tmp_path, stage):
    """Write the shard of a stage, and return its URL."""
    path = tmp_path / f"{stage}.tar"
    url = shards.write(path, samples(**STAGES[stage][1]))
    if stage == "cut":
        # Within the last member's padding: of five samples, the array of the last one is lost.
        path.write_bytes(path.read_bytes()[: 5 * 4 * 512 - 500])
    if stage == "gone":
        path.unlink()
    return url


def kept(batches):
    return [label for labels, _ in batches for label in labels.tolist()]


def expected(stage):
    return {"cut": [0, 1, 2, 3], "gone": []}.get(stage, [0, 1, 3, 4])
