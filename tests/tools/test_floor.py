"""The floor reads what it is told to, all of it, and says so when the server does not give it."""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

import measuring

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 300_000


class Answers(BaseHTTPRequestHandler):
    """Gives SIZE bytes, or the range of them; closes after some answers; cuts /cut short."""

    protocol_version = "HTTP/1.1"
    answered = 0

    def do_GET(self) -> None:
        """Answer."""
        first, last, status = 0, SIZE - 1, 200
        if "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            status = 206
        if self.path == "/none":
            return self.send_error(404)
        body = bytes(last - first + 1)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:1000] if self.path == "/cut" else body)
        self.answered += 1
        self.close_connection = self.path == "/cut" or self.answered == 3
        return None

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """Serve on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def floor(
    port: int, folder: Path, reads: str, connections: int
) -> subprocess.CompletedProcess[str]:
    """Run it with one MiB of memory."""
    (folder / "list").write_text(reads)
    numbers = [str(port), str(connections), str(measuring.MIB)]
    command = [measuring.TOOLS / "floor", "127.0.0.1", *numbers, folder / "list"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("connections", [1, 3, 50])
def test_reads_every_byte(port: int, tmp_path: Path, connections: int) -> None:
    """Whole objects and ranges, over connections that the server closes now and then."""
    done = floor(port, tmp_path, "/a\n/b 0 1\n/c 1000 250000\n" * 10, connections)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["bytes"] == 10 * (SIZE + 1 + 249_000)
    assert answer["reads"] == 30


@pytest.mark.parametrize("reads", ["/none\n", "/cut\n", "/a 5\n", "/a 9 9\n", ""])
def test_refuses_what_it_cannot_read(port: int, tmp_path: Path, reads: str) -> None:
    """An error answer, a body cut short, a bad line, no line: never a figure."""
    done = floor(port, tmp_path, reads, 1)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("floor: ")
