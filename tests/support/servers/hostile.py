"""Hostile clients in a process of their own, which takes one core at most: connections that send again and again.

`python -m tests.support.servers.hostile PORT CONNECTIONS ADDRESS` reads an attack from its standard input: a line of
JSON, then the payload. Answers are thrown away, and closed connections are opened again.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

_READ = 256 << 10
_SAMPLED_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    payload: bytes
    portion: int | None = None
    pause: float = 0.0
    hangs_up: bool = False


class Attacker:
    def __init__(self, port: int, address: str, selector: selectors.BaseSelector, sent: Counter[str]) -> None:
        self._port, self._address, self._selector, self._sent = port, address, selector, sent
        self._attack = Attack(payload=b"")
        self._left = memoryview(b"")
        self._due = 0.0
        self._socket: socket.socket | None = None

    def begin(self, attack: Attack) -> None:
        self._attack = attack
        self._connect()

    def act(self, events: int) -> None:
        assert self._socket is not None
        try:
            if events & selectors.EVENT_READ and not self._socket.recv(_READ):
                raise ConnectionResetError
            if events & selectors.EVENT_WRITE and self._left:
                self._send()
        except BlockingIOError:
            pass
        except OSError:
            self._sent["closed"] += 1
            self._connect()

    def resume(self, now: float) -> None:
        if self._socket is not None and self._due and now >= self._due:
            self._due = 0.0
            self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def _send(self) -> None:
        assert self._socket is not None
        size = self._socket.send(self._left[: self._attack.portion])
        self._sent["bytes"] += size
        self._left = self._left[size:]
        if not self._left:
            self._sent["payloads"] += 1
            if self._attack.hangs_up:
                self._connect()
                return
            self._left = memoryview(self._attack.payload)
        if self._attack.pause:
            self._due = time.monotonic() + self._attack.pause
            self._selector.modify(self._socket, selectors.EVENT_READ, self)

    def _connect(self) -> None:
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
        self._sent["connections"] += 1
        self._socket = socket.socket()
        self._socket.setblocking(False)  # noqa: FBT003 - its only way
        with suppress(OSError):
            self._socket.bind((self._address, 0))
            self._socket.connect(("127.0.0.1", self._port))
        self._left, self._due = memoryview(self._attack.payload), 0.0
        writes = selectors.EVENT_WRITE if self._left else 0
        self._selector.register(self._socket, selectors.EVENT_READ | writes, self)


@contextmanager
def attacked(port: int, attack: Attack | bytes, *, connections: int, address: str = "127.0.0.1") -> Iterator[None]:
    if isinstance(attack, bytes):
        attack = Attack(payload=attack)
    command = [sys.executable, "-m", "tests.support.servers.hostile", str(port), str(connections), address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        options = {"portion": attack.portion, "pause": attack.pause, "hangs_up": attack.hangs_up}
        try:
            process.stdin.write(json.dumps(options).encode() + b"\n" + attack.payload)
            process.stdin.close()
            assert process.stdout.readline() == b"attacking\n"
            yield
        finally:
            process.kill()


@contextmanager
def memory_within(most_bytes: int) -> Iterator[None]:
    process, over = psutil.Process(), threading.Event()
    first = most = process.memory_info().rss

    def sample() -> None:
        nonlocal most
        while not over.wait(_SAMPLED_EVERY_S):
            most = max(most, process.memory_info().rss)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert most - first <= most_bytes, f"{(most - first) >> 20} MiB more were resident"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("address")
    given = parser.parse_args()
    options = json.loads(sys.stdin.buffer.readline())
    attack = Attack(payload=sys.stdin.buffer.read(), **options)
    selector = selectors.DefaultSelector()
    attackers = [Attacker(given.port, given.address, selector, Counter()) for _ in range(given.connections)]
    for attacker in attackers:
        attacker.begin(attack)
    print("attacking", flush=True)  # noqa: T201 - the test waits for it
    while True:
        for key, events in selector.select(0.01 if attack.pause else 1.0):
            key.data.act(events)
        if attack.pause:
            for attacker in attackers:
                attacker.resume(time.monotonic())


if __name__ == "__main__":
    main()
