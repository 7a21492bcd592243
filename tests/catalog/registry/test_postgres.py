from __future__ import annotations

import socket

import pytest

from catalog.errors import RegistryError, RegistryUnreachable
from catalog.registry.postgres import Postgres


def test_a_dsn_that_cannot_be_read_is_not_printed():
    with pytest.raises(RegistryError, match="postgresql://user@host") as caught:
        Postgres("host=db password=hush nonsense")
    assert "hush" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_nobody_there_names_host_and_database_never_the_password():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RegistryUnreachable) as caught:
        Postgres(f"postgresql://archiver:hush@127.0.0.1:{port}/archive")
    text = str(caught.value)
    assert all(part in text for part in ("127.0.0.1", str(port), "'archive'", "'archiver'"))
    assert "hush" not in text
    assert caught.value.retryable
