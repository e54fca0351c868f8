"""The command on real servers: what it lists and prints is what another client put there."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import BUCKET

if TYPE_CHECKING:
    from conftest import Shards
    from servers import Server

COMMAND = Path(__file__).parents[2] / "target" / "release" / "onecopy"
# What may stand in a key, and is easily lost between XML, URLs and signatures.
ODD_KEYS = ["a b", "a+b", "a%20b", "a&b=c?d#e", "ß/写真", "it's (1)*!~", "<tag>;,:@$"]


def onecopy(server: Server, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command against a server."""
    command = [COMMAND, *arguments, "--endpoint-url", server.endpoint_url]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_cat_prints_every_shard_as_it_was_packed(photo_shards: Shards) -> None:
    """The bytes on stdout are the bytes of the file."""
    for file in photo_shards.files:
        url = f"s3://{BUCKET}/{photo_shards.prefix}/{file.name}"
        done = onecopy(photo_shards.server, "cat", url)
        assert done.returncode == 0, done.stderr.decode()
        want = hashlib.sha256(file.read_bytes()).hexdigest()
        assert hashlib.sha256(done.stdout).hexdigest() == want


def test_ls_lists_every_shard(photo_shards: Shards) -> None:
    """Every key under the prefix stands in the listing."""
    done = onecopy(photo_shards.server, "ls", f"s3://{BUCKET}/{photo_shards.prefix}/")
    assert done.returncode == 0, done.stderr.decode()
    for file in photo_shards.files:
        assert file.name in done.stdout.decode()


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_keys_are_listed_and_read(server: Server, key: str) -> None:
    """A key is raw bytes: listed as it is, and signed so that the server agrees."""
    body = f"the body of {key}".encode()
    server.client().put_object(Bucket=BUCKET, Key=f"odd/{key}", Body=body)
    listed = onecopy(server, "ls", "-r", f"s3://{BUCKET}/odd/")
    assert listed.returncode == 0, listed.stderr.decode()
    assert key in listed.stdout.decode()
    read = onecopy(server, "cat", f"s3://{BUCKET}/odd/{key}")
    assert read.returncode == 0, read.stderr.decode()
    assert read.stdout == body


def test_what_is_not_there_ends_with_2_and_a_name(server: Server) -> None:
    """A missing object is an error on stderr that names it; stdout stays empty."""
    done = onecopy(server, "cat", f"s3://{BUCKET}/no-such-key")
    assert done.returncode == 2
    assert done.stdout == b""
    assert "no-such-key" in done.stderr.decode()


def test_an_empty_part_of_a_key_is_kept(moto: Server) -> None:
    """A key with two slashes in a row is not the key with one (SeaweedFS makes them one)."""
    moto.client().put_object(Bucket=BUCKET, Key="odd//twice", Body=b"two slashes")
    assert onecopy(moto, "cat", f"s3://{BUCKET}/odd//twice").stdout == b"two slashes"
    assert onecopy(moto, "cat", f"s3://{BUCKET}/odd/twice").returncode == 2
