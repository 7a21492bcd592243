from __future__ import annotations

import socket
from typing import Any

import pytest

from catalog.errors import RegistryError, RegistryUnreachable
from catalog.registry.postgres import LOCK_SECONDS, Postgres, configure_session


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


@pytest.mark.parametrize("may_write", [True, False])
@pytest.mark.parametrize("seconds", [None, 5.0])
def test_statements_of_readers_end_in_time(may_write: bool, seconds: float | None):
    connection = Settings()
    configure_session(connection, may_write=may_write, answers_within=seconds)  # type: ignore[arg-type]
    assert connection.values["lock_timeout"] == str(int((seconds or LOCK_SECONDS) * 1_000))
    is_ended = seconds is not None and not may_write
    assert connection.values.get("statement_timeout") == ("5000" if is_ended else None)


class Settings:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def execute(self, _statement: str, values: tuple[str, str]) -> Any:
        self.values[values[0]] = values[1]
