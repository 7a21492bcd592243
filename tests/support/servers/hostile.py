"""Hostile clients in a process of their own, which takes one core at most: connections that send without a pause.

`python -m tests.support.servers.hostile PORT CONNECTIONS ADDRESS` reads the bytes that each connection sends from its
standard input. They are sent again and again, answers are thrown away, and closed connections are opened again.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_READ = 256 << 10


class _Attacker:
    def __init__(self, port: int, address: str, payload: bytes) -> None:
        self._port, self._address, self._payload = port, address, payload
        self._left = memoryview(payload)
        self.socket: socket.socket | None = None

    def connect(self, selector: selectors.BaseSelector) -> None:
        """Connect again."""
        self.socket = socket.socket()
        self.socket.setblocking(False)  # noqa: FBT003 - its only way
        with suppress(BlockingIOError):
            self.socket.bind((self._address, 0))
            self.socket.connect(("127.0.0.1", self._port))
        self._left = memoryview(self._payload)
        selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def act(self, selector: selectors.BaseSelector, events: int) -> None:
        """Take answers and send requests."""
        assert self.socket is not None
        try:
            if events & selectors.EVENT_READ and not self.socket.recv(_READ):
                raise ConnectionResetError
            if events & selectors.EVENT_WRITE:
                self._left = self._left[self.socket.send(self._left) :] or memoryview(self._payload)
        except BlockingIOError:
            pass
        except OSError:
            selector.unregister(self.socket)
            self.socket.close()
            self.connect(selector)


def attack(port: int, connections: int, address: str, payload: bytes) -> None:
    """Send until the process is ended."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        _Attacker(port, address, payload).connect(selector)
    print("attacking", flush=True)  # noqa: T201 - the test waits for it
    while True:
        for key, events in selector.select(1.0):
            key.data.act(selector, events)
        if not payload:
            time.sleep(0.01)


@contextmanager
def attacked(port: int, payload: bytes, *, connections: int, address: str = "127.0.0.1") -> Iterator[None]:
    """Have this many connections from an address send a payload while a block runs."""
    command = [sys.executable, "-m", "tests.support.servers.hostile", str(port), str(connections), address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(payload)
            process.stdin.close()
            assert process.stdout.readline() == b"attacking\n"
            yield
        finally:
            process.kill()


def main() -> None:
    """Attack as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("address")
    given = parser.parse_args()
    attack(given.port, given.connections, given.address, sys.stdin.buffer.read())


if __name__ == "__main__":
    main()
