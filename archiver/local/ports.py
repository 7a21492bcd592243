"""Finds free TCP ports on the loopback address, below the range of outgoing connections.

Another program may take a port before it is used.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Collection, Iterable, Mapping

HOST = "127.0.0.1"
COMPANION = 10_000
"""SeaweedFS takes its HTTP port plus this number as its gRPC port."""

_CANDIDATES = range(15_000, 22_000)
_ATTEMPTS = 2_000
_POLL = 0.05


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def all_free(ports: Collection[int], *, within: float) -> bool:
    deadline = time.monotonic() + within
    while not all(is_free(port) for port in ports):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


def accepts(port: int, *, timeout: float = 1.0) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=timeout):
            return True
    except OSError:
        return False


def choose(names: Iterable[str], *, avoid: Collection[int] = ()) -> Mapping[str, int]:
    """The ports 10,000 above are free, too."""
    chosen: dict[str, int] = {}
    for name in names:
        taken = {*avoid, *chosen.values()}
        chosen[name] = next(port for port in _draws() if port not in taken and _usable(port))
    return chosen


def _draws() -> Iterable[int]:
    for _ in range(_ATTEMPTS):
        yield secrets.choice(_CANDIDATES)


def _usable(port: int) -> bool:
    return is_free(port) and is_free(port + COMPANION)
