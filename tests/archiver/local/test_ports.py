"""Chosen ports are distinct and free."""

from __future__ import annotations

import socket

from archiver.local import ports


def test_chosen_ports_are_distinct_and_can_be_bound():
    chosen = ports.choose([f"p{number}" for number in range(20)])
    assert len(set(chosen.values())) == 20
    assert all(ports.is_free(port) and ports.is_free(port + ports.COMPANION) for port in chosen.values())


def test_a_listening_port_is_taken():
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.accepts(port)
    assert not ports.accepts(port, timeout=0.2)
    assert ports.is_free(port)
