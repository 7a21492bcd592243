"""Attaches the catalog to DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from archiver.views.dialects import dialect_of
from archiver.views.kinds import QueryEngine

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_DIALECT: Final = dialect_of(QueryEngine.DUCKDB)
_TOKENS: Final = "/v1/oauth/tokens"


def attach(connection: DuckDBPyConnection, properties: Mapping[str, str], *, name: str = "lake") -> None:
    """Attach `[catalog]`, unless a database has this name.

    Credentials become secrets of the connection. A missing Iceberg extension is downloaded.
    """
    if connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [name]).fetchone():
        return
    loaded = "SELECT loaded, installed FROM duckdb_extensions() WHERE extension_name = 'iceberg'"
    is_loaded, is_installed = connection.execute(loaded).fetchone() or (False, False)
    if not is_loaded:
        connection.execute("LOAD iceberg" if is_installed else "INSTALL iceberg; LOAD iceberg")
    options = {"TYPE": "iceberg", "ENDPOINT": properties["uri"].rstrip("/")}
    access = _access_secret(properties)
    if access is None:
        options["AUTHORIZATION_TYPE"] = "none"
    else:
        options["SECRET"] = f"{name}_catalog"
        _create_secret(connection, f"{name}_catalog", access)
    storage = _storage_secret(properties)
    if storage is not None:
        options["ACCESS_DELEGATION_MODE"] = "none"
        _create_secret(connection, f"{name}_storage", storage)
    warehouse = _text(properties.get("warehouse", ""))
    given = ", ".join(f"{key} {_text(value)}" for key, value in options.items())
    connection.execute(f"ATTACH {warehouse} AS {_DIALECT.quoted(name)} ({given})")


def _access_secret(properties: Mapping[str, str]) -> dict[str, str] | None:
    if token := properties.get("token"):
        return {"TYPE": "iceberg", "TOKEN": token}
    if "credential" not in properties:
        return None
    client, _, secret = properties["credential"].rpartition(":")
    server = properties.get("oauth2-server-uri") or properties["uri"].rstrip("/") + _TOKENS
    scope = {"OAUTH2_SCOPE": properties["scope"]} if "scope" in properties else {}
    return {"TYPE": "iceberg", "CLIENT_ID": client, "CLIENT_SECRET": secret, "OAUTH2_SERVER_URI": server, **scope}


def _storage_secret(properties: Mapping[str, str]) -> dict[str, str] | None:
    if "s3.access-key-id" not in properties:
        return None
    names = {
        "s3.access-key-id": "KEY_ID",
        "s3.secret-access-key": "SECRET",
        "s3.session-token": "SESSION_TOKEN",
        "s3.region": "REGION",
    }
    secret = {"TYPE": "s3", **{key: properties[name] for name, key in names.items() if name in properties}}
    if endpoint := properties.get("s3.endpoint"):
        address = urlsplit(endpoint)
        secret |= {"ENDPOINT": address.netloc, "USE_SSL": str(address.scheme == "https").lower()}
        if properties.get("s3.force-virtual-addressing", "false") != "true":
            secret["URL_STYLE"] = "path"
    return secret


def _create_secret(connection: DuckDBPyConnection, name: str, values: Mapping[str, str]) -> None:
    given = ", ".join(f"{key} {_text(value)}" for key, value in values.items())
    connection.execute(f"CREATE OR REPLACE SECRET {_DIALECT.quoted(name)} ({given})")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
