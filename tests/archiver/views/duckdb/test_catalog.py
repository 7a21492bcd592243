"""DuckDB's secrets and options for a catalog."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from archiver.views.duckdb import attach

PLACE = {"uri": "https://catalog.example.com/", "warehouse": "it's a lake"}
STORE = {
    "s3.access-key-id": "id",
    "s3.secret-access-key": "it's secret",
    "s3.endpoint": "http://127.0.0.1:9000",
    "s3.region": "here",
}


class Told:
    def __init__(self, *, loaded: bool = True, installed: bool = True) -> None:
        self.statements: list[str] = []
        self._extension = (loaded, installed)

    def execute(self, statement: str, _: Any = None) -> Told:
        self.statements.append(statement)
        return self

    def fetchone(self) -> Any:
        return self._extension if "duckdb_extensions" in self.statements[-1] else None

    @property
    def changes(self) -> list[str]:
        return [statement for statement in self.statements if not statement.startswith("SELECT")]


def told(**properties: str) -> list[str]:
    connection: Any = Told()
    attach(connection, PLACE | properties)
    changes: list[str] = connection.changes
    return changes


def test_a_catalog_that_asks_nobody_and_gives_keys_of_the_store() -> None:
    assert told() == [
        (
            "ATTACH 'it''s a lake' AS \"lake\""
            " (TYPE 'iceberg', ENDPOINT 'https://catalog.example.com', AUTHORIZATION_TYPE 'none')"
        )
    ]


def test_credentials_become_secrets() -> None:
    access, storage, attached = told(credential="me:hush", scope="all", **STORE)
    assert access == (
        "CREATE OR REPLACE SECRET \"lake_catalog\" (TYPE 'iceberg', CLIENT_ID 'me', CLIENT_SECRET 'hush',"
        " OAUTH2_SERVER_URI 'https://catalog.example.com/v1/oauth/tokens', OAUTH2_SCOPE 'all')"
    )
    assert storage == (
        "CREATE OR REPLACE SECRET \"lake_storage\" (TYPE 's3', KEY_ID 'id', SECRET 'it''s secret', REGION 'here',"
        " ENDPOINT '127.0.0.1:9000', USE_SSL 'false', URL_STYLE 'path')"
    )
    assert attached.endswith("SECRET 'lake_catalog', ACCESS_DELEGATION_MODE 'none')")


def test_a_token_is_a_secret_too() -> None:
    access, _ = told(token="hush")
    assert access == "CREATE OR REPLACE SECRET \"lake_catalog\" (TYPE 'iceberg', TOKEN 'hush')"


@pytest.mark.parametrize(
    ("installed", "first"), [(True, "LOAD iceberg"), (False, "INSTALL iceberg; LOAD iceberg")], ids=str
)
def test_the_extension_is_loaded_and_installed_if_it_is_missing(installed: bool, first: str) -> None:
    connection: Any = Told(loaded=False, installed=installed)
    attach(connection, PLACE)
    assert connection.changes[0] == first


def test_a_database_of_the_name_is_left_as_it_is() -> None:
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS lake")
        attach(connection, PLACE | {"credential": "me:hush"})
        assert connection.sql("SELECT count(*) FROM duckdb_secrets()").fetchall() == [(0,)]
