"""``gs://`` and ``az://`` from Python, against a stand-in that checks who asks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

import onecopy
import shards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KEY = base64.b64encode(b"made-up key of an account").decode()
TOKEN = "made-up-token"  # noqa: S105 - it opens nothing
SIGNED = ["content-encoding", "content-language", "content-length", "content-md5", "content-type"]
SIGNED += ["date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]


def shared_key(method: str, target: str, headers: Mapping[str, str]) -> str:
    """Return what Azure expects in Authorization, after its reference."""
    url = urlsplit(target)
    lines = [method] + [headers.get(name, "") for name in SIGNED]
    lines += sorted(f"{k}:{v}" for k, v in headers.items() if k.startswith("x-ms-"))
    lines.append(f"/acc{url.path}")
    pairs = parse_qsl(url.query, keep_blank_values=True)
    lines += sorted(f"{name.lower()}:{value}" for name, value in pairs)
    digest = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), "sha256")
    return f"SharedKey acc:{base64.b64encode(digest).decode()}"


class Handler(BaseHTTPRequestHandler):
    """Both services: Azure's below ``/acc/``, Google's everywhere else."""

    protocol_version = "HTTP/1.1"
    server: Cloud

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer as to GET, without the body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Check who asks, then list or send."""
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_azure = url.path.startswith("/acc/")
        wanted = f"Bearer {TOKEN}"
        if is_azure:
            wanted = shared_key(self.command, self.path, headers)
        if headers.get("authorization") != wanted:
            self.refuse(403, "AuthenticationFailed" if is_azure else "AccessDenied")
            return
        path = url.path.removeprefix("/acc") if is_azure else url.path
        _, _, key = path[1:].partition("/")
        asked = dict(parse_qsl(url.query))
        if not key:
            self.send(200, self.listing(asked.get("prefix", ""), is_azure=is_azure).encode())
        elif unquote(key) in self.server.objects:
            self.object(self.server.objects[unquote(key)], headers.get("range"))
        else:
            self.refuse(404, "BlobNotFound" if is_azure else "NoSuchKey")

    def listing(self, prefix: str, *, is_azure: bool) -> str:
        """Return a listing on one page."""
        found = {k: v for k, v in sorted(self.server.objects.items()) if k.startswith(prefix)}
        if is_azure:
            blobs = "".join(
                f"<Blob><Name>{escape(k)}</Name><Properties><Etag>{tag(v)}</Etag>"
                f"<Content-Length>{len(v)}</Content-Length></Properties></Blob>"
                for k, v in found.items()
            )
            return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"
        contents = "".join(
            f"<Contents><Key>{quote(k)}</Key><ETag>&quot;{tag(v)}&quot;</ETag>"
            f"<Size>{len(v)}</Size></Contents>"
            for k, v in found.items()
        )
        head = "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{contents}</ListBucketResult>"

    def object(self, body: bytes, wanted: str | None) -> None:
        """Send an object, or a range of it."""
        headers = {"ETag": f'"{tag(body)}"'}
        if wanted is None:
            self.send(200, body, headers)
            return
        first, last = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
        part = body[first : last + 1]
        headers["Content-Range"] = f"bytes {first}-{first + len(part) - 1}/{len(body)}"
        self.send(206, part, headers)

    def refuse(self, status: int, code: str) -> None:
        """Send an error."""
        self.send(status, f"<Error><Code>{code}</Code></Error>".encode(), {"x-ms-error-code": code})

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Cloud(ThreadingHTTPServer):
    """A server with objects."""

    daemon_threads = True

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects = objects

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


def tag(body: bytes) -> str:
    """Return a tag that tells bodies apart."""
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Four shards of 25 samples, and an object with an odd name."""
    paths = [tmp_path / f"{at}.tar" for at in range(4)]
    for at, path in enumerate(paths):
        shards.small(path, at * 25, 25)
    objects = {f"train/{path.name}": path.read_bytes() for path in paths}
    with Cloud({**objects, "odd/a b+&?#ß": b"odd"}) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(params=["gs://bkt/", "az://bkt/"])
def base(request: pytest.FixtureRequest, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> str:
    """What stands before a key; the environment says where that is, and as whom."""
    for name in ("STORAGE_EMULATOR_HOST", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_AUTH_ACCESS_TOKEN", TOKEN)
    where = f"BlobEndpoint={cloud.url}/acc;AccountName=acc;AccountKey={KEY}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", where)
    return str(request.param)


def where(base: str, cloud: Cloud) -> str:
    """Return the endpoint to name outright."""
    return f"{cloud.url}/acc" if base.startswith("az") else cloud.url


@pytest.mark.parametrize("tail", ["train/{0..3}.tar", "train/", "train/*.tar"])
def test_open_reads_every_sample(base: str, cloud: Cloud, tail: str) -> None:
    """Shards come whole, however they are named."""
    loader = onecopy.open(base + tail, endpoint_url=where(base, cloud)).to_tuple("cls").batch(10)
    labels = [int(label) for (batch,) in loader for label in batch]
    assert labels == list(range(100))


def test_errors_are_told_by_their_kind(base: str, cloud: Cloud) -> None:
    """What is missing, and who may not."""
    with pytest.raises(onecopy.NotFoundError, match="none"):
        list(onecopy.open(f"{base}none.tar", endpoint_url=where(base, cloud)))
    endpoint = where(base, cloud)
    denied = onecopy.open(f"{base}train/0.tar", endpoint_url=endpoint, no_sign_request=True)
    with pytest.raises(onecopy.DeniedError) as caught:
        list(denied)
    assert "no_sign_request" in caught.value.help


def test_the_command_lists_prints_and_copies(base: str, cloud: Cloud, tmp_path: Path) -> None:
    """Odd names go through signatures and come back."""

    def run(*arguments: str) -> bytes:
        command = [sys.executable, "-W", "ignore", "-m", "onecopy", *arguments]
        command += ["--endpoint-url", where(base, cloud)]
        return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout

    assert "odd/a b+&?#ß" in run("ls", "-r", base).decode()
    assert run("cat", f"{base}odd/a b+&\\?#ß") == b"odd"
    run("cp", "-r", f"{base}train", str(tmp_path / "out"))
    for at in range(4):
        copied = (tmp_path / "out" / f"{at}.tar").read_bytes()
        assert copied == cloud.objects[f"train/{at}.tar"]
