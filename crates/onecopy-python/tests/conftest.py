"""What the tests share."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import shards

# A shell that starts the tests in the background has SIGINT ignored, and so would all that they
# start: Ctrl-C would end none of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A shard of ten samples with all kinds of fields."""
    return shards.numbered(tmp_path / "ten.tar", 0, 10)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Four shards of 25 samples with a ``cls`` each, numbered through."""
    return [shards.small(tmp_path / f"{at}.tar", at * 25, 25) for at in range(4)]


@dataclass
class Silent:
    """An object on a server that takes requests and never answers."""

    server: socket.socket
    taken: list[socket.socket]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server.getsockname()[1]}/a.tar"

    def await_request(self) -> None:
        """Wait until somebody asks for it."""
        connection, _ = self.server.accept()
        self.taken.append(connection)
        connection.recv(1)


@pytest.fixture
def silent_url() -> Iterator[Silent]:
    """An object for which one waits in vain."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(60)
        silent = Silent(server, [])
        yield silent
        for connection in silent.taken:
            connection.close()


@pytest.fixture(scope="session")
def make_index() -> Callable[[list[str], Path], Path]:
    """Index shards: returns the index of ``urls``, written into a folder."""

    def make(urls: list[str], folder: Path) -> Path:
        # In a process of its own: a command has its own log, which this one would be left with.
        command = [sys.executable, "-W", "ignore", "-m", "onecopy", "index", *urls]
        subprocess.run([*command, "--out", str(folder), "--quiet"], check=True)
        return folder / "index.json"

    return make
