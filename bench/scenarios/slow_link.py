"""A link of a given rate: a TCP relay that hands on no more bytes a second than that, in total."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 64 << 10


class Rate:
    """Bytes that may pass, over all connections."""

    def __init__(self, bytes_per_second: float) -> None:
        self.lock = threading.Lock()
        self.bytes_per_second = bytes_per_second
        self.free_at = 0.0

    def wait(self, size: int) -> None:
        """Wait until these bytes may pass."""
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + size / self.bytes_per_second
            pause = self.free_at - now
        time.sleep(pause)


def hand_on(source: socket.socket, target: socket.socket, rate: Rate | None) -> None:
    """Hand bytes on until either side ends."""
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            if rate:
                rate.wait(len(piece))
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def accept(listener: socket.socket, port: int, rate: Rate) -> None:
    """Connect each client to the server."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            # Little may wait inside the relay: the client is to see the rate, not a burst.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
            for ends in ((client, server, None), (server, client, rate)):
                threading.Thread(target=hand_on, args=ends, daemon=True).start()


@contextlib.contextmanager
def slow_link(port: int, bytes_per_second: float) -> Iterator[int]:
    """Stand before a server; gives the port to connect to."""
    listener = socket.create_server(("127.0.0.1", 0))
    rate = Rate(bytes_per_second)
    threading.Thread(target=accept, args=(listener, port, rate), daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
