"""Ports that nobody listens on at the moment."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
