"""Versions, and copies within a store, on real servers: what arrives is what was put there."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from test_command import onecopy

from conftest import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from servers import Server

KEY = bytes(range(32))
# An object larger than one range.
LARGE = bytes(range(256)) * (20 << 12)


@pytest.fixture
def versions(server: Server) -> list[str]:
    """Two versions of an object, `old` and `new`, and a delete marker above them."""
    client = server.client()
    client.create_bucket(Bucket="versioned")
    client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    found = [
        client.put_object(Bucket="versioned", Key="k", Body=body)["VersionId"]
        for body in (b"old", b"new")
    ]
    client.delete_object(Bucket="versioned", Key="k")
    return found


def test_each_version_is_copied_by_its_name(
    server: Server, versions: list[str], tmp_path: Path
) -> None:
    """Into a file and to another object, although the object itself is deleted."""
    for version, body in zip(versions, (b"old", b"new"), strict=True):
        url = f"s3://versioned/k?versionId={version}"
        file = tmp_path / body.decode()
        for target in (str(file), f"s3://{BUCKET}/copies/{body.decode()}"):
            done = onecopy(server, "cp", url, target)
            assert done.returncode == 0, done.stderr.decode()
        assert file.read_bytes() == body
        copied = server.client().get_object(Bucket=BUCKET, Key=f"copies/{body.decode()}")
        assert copied["Body"].read() == body
    done = onecopy(server, "cp", "s3://versioned/k", str(tmp_path / "none"))
    assert done.returncode == 1, done.stderr.decode()
    assert not (tmp_path / "none").exists()


def test_a_page_of_html_that_is_an_object_is_one(server: Server, tmp_path: Path) -> None:
    """Its type is told by whoever put it there and means nothing."""
    body = b"<!DOCTYPE html><html></html>"
    server.client().put_object(
        Bucket=BUCKET, Key="pages/index.html", Body=body, ContentType="text/html"
    )
    done = onecopy(server, "cat", f"s3://{BUCKET}/pages/index.html")
    assert done.stdout == body, done.stderr.decode()
    done = onecopy(server, "cp", "-r", f"s3://{BUCKET}/pages/", str(tmp_path))
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "index.html").read_bytes() == body


def test_empty_and_large_objects_are_copied_within_the_store(server: Server) -> None:
    """No byte less and no byte more."""
    client = server.client()
    for name, body in (("empty", b""), ("large", LARGE)):
        client.put_object(Bucket=BUCKET, Key=f"sizes/{name}", Body=body)
        done = onecopy(
            server, "cp", f"s3://{BUCKET}/sizes/{name}", f"s3://{BUCKET}/sizes/{name}-copy"
        )
        assert done.returncode == 0, done.stderr.decode()
        copied = client.get_object(Bucket=BUCKET, Key=f"sizes/{name}-copy")["Body"].read()
        assert hashlib.sha256(copied).digest() == hashlib.sha256(body).digest()


def test_what_is_under_a_key_of_the_customer_is_copied_under_it(
    seaweedfs: Server, tmp_path: Path
) -> None:
    """Within the store, and back into a file; without the key it is refused with the cure."""
    key = f"--sse-c-key={base64.b64encode(KEY).decode()}"
    source = tmp_path / "secret"
    source.write_bytes(LARGE)
    here, there = f"s3://{BUCKET}/locked/a", f"s3://{BUCKET}/locked/b"
    for arguments in ((str(source), here), (here, there), (there, str(tmp_path / "back"))):
        done = onecopy(seaweedfs, "cp", "--json", *arguments, key)
        assert done.returncode == 0, done.stderr.decode()
        summary = json.loads(done.stdout.splitlines()[-1])
        assert not summary["ledger"]["fallbacks"], summary
    assert (tmp_path / "back").read_bytes() == LARGE
    done = onecopy(seaweedfs, "cat", there)
    assert done.returncode == 2
    assert "--sse-c-key" in done.stderr.decode()
