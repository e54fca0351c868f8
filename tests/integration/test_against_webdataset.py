"""What onecopy yields is what the webdataset package reads from the same shards."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import onecopy
import pytest
import webdataset

from conftest import BUCKET
from servers import REGION
from shards import samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conftest import Shards
    from servers import Server

VALUES = ["cls", "json", "txt", "npy"]
FIELDS = ["jpg", "thumb.png", *VALUES]


def by_shard(read: Iterable[Mapping[str, Any]], shard: str) -> dict[str, list[Mapping[str, Any]]]:
    """Sort samples by the file name of their shard, keeping their order within it."""
    sorted_: dict[str, list[Mapping[str, Any]]] = {}
    for sample in read:
        sorted_.setdefault(PurePosixPath(sample[shard]).name, []).append(sample)
    return sorted_


def theirs(shards: Shards) -> Any:
    """Open the local files with webdataset."""
    return webdataset.WebDataset([str(file) for file in shards.files], shardshuffle=False)


def ours(shards: Shards) -> Any:
    """Open the shards on the server with onecopy."""
    return onecopy.open(shards.url, endpoint_url=shards.server.endpoint_url, region=REGION)


def field_names(sample: Mapping[str, Any]) -> set[str]:
    """Return the names of a sample's fields, without what describes it."""
    return {name for name in sample if not name.startswith("__")}


def pairs(shards: Shards, read: Any, wanted: Any) -> list[tuple[Any, Any]]:
    """Put each sample of ours beside the same of theirs: same shards, same keys, same order."""
    got, want = by_shard(read, "__shard__"), by_shard(wanted, "__url__")
    assert sorted(got) == sorted(want) == [file.name for file in shards.files]
    found = []
    for name in want:
        assert [s["__key__"] for s in got[name]] == [s["__key__"] for s in want[name]]
        found += zip(got[name], want[name], strict=True)
    assert len(found) == len(samples())
    return found


def test_same_samples_as_webdataset(photo_shards: Shards) -> None:
    """Every field of every sample, byte by byte."""
    for got, want in pairs(photo_shards, ours(photo_shards), theirs(photo_shards)):
        assert field_names(got) == field_names(want) == set(FIELDS)
        for name in FIELDS:
            assert bytes(got[name]) == want[name], f"{want['__key__']}: {name} differs"


def test_same_values_as_webdataset(photo_shards: Shards) -> None:
    """Every field that is not a picture, decoded."""
    read = ours(photo_shards).decode()
    for got, want in pairs(photo_shards, read, theirs(photo_shards).decode()):
        for name in ["cls", "json", "txt"]:
            assert got[name] == want[name]
            assert type(got[name]) is type(want[name])
        assert np.asarray(got["npy"]).dtype == want["npy"].dtype
        np.testing.assert_array_equal(np.asarray(got["npy"]), want["npy"])


def test_two_passes_give_the_same(photo_shards: Shards) -> None:
    """A loader can be iterated again, and nothing is different or missing."""
    loader = ours(photo_shards)
    first, second = ([(s["__shard__"], s["__key__"]) for s in loader] for _ in range(2))
    assert first == second
    assert len(first) == len(samples())


@pytest.mark.parametrize("missing", ["key", "bucket"])
def test_what_is_not_there_is_named(server: Server, missing: str) -> None:
    """An object or a bucket that does not exist is an error which names it."""
    url = f"s3://{BUCKET}/no-such-key.tar" if missing == "key" else "s3://no-such-bucket/a.tar"
    loader = onecopy.open(url, endpoint_url=server.endpoint_url, region=REGION)
    with pytest.raises(FileNotFoundError, match=f"no-such-{missing}"):
        list(loader)


def test_a_wrong_secret_is_denied(seaweedfs: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that checks signatures refuses a wrong one, and the secret is not in the error."""
    seaweedfs.client().put_object(Bucket=BUCKET, Key="denied.tar", Body=b"\0" * 10240)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    loader = onecopy.open(
        f"s3://{BUCKET}/denied.tar", endpoint_url=seaweedfs.endpoint_url, region=REGION
    )
    with pytest.raises(PermissionError, match="denied") as caught:
        list(loader)
    assert "not-the-secret" not in str(caught.value)
