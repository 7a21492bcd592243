from __future__ import annotations

import socket
import ssl

import pytest

from archiver.kafka.tls import tls_context


def test_abandoned_handshake_leaves_no_socket() -> None:
    context = tls_context(ca=None, certificate=None, key=None, key_password=None, verify=False, check_hostname=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        plain = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            plain.settimeout(0)
            shaking = context.wrap_socket(plain, do_handshake_on_connect=False)
            with pytest.raises(ssl.SSLWantReadError):
                shaking.do_handshake()
            accepted.settimeout(10)
            assert accepted.recv(1 << 16)
            del shaking
            assert accepted.recv(1) == b""
