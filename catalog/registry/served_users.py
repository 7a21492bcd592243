"""Users of `archiver serve kafka`, with SCRAM keys in place of passwords."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from catalog.errors import RegistryError
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramKeys:
    """A user's keys for one SCRAM mechanism."""

    mechanism: str
    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EveryUser:
    """Unknown users get their salts from the database's `secret`."""

    keys: dict[str, tuple[ScramKeys, ...]]
    secret: bytes = field(repr=False)


def every(connection: Connection) -> EveryUser:
    (secret,) = connection.execute("SELECT secret FROM served_users_secret").fetchone() or (b"",)
    if not secret:
        raise RegistryError("the registry has lost its row of `served_users_secret`: restore it from a backup")
    keys: dict[str, tuple[ScramKeys, ...]] = {}
    rows = connection.execute(
        "SELECT name, mechanism, salt, iterations, stored_key, server_key, changed_at FROM served_users"
        " ORDER BY name, mechanism"
    )
    for name, mechanism, salt, iterations, stored_key, server_key, changed_at in rows:
        key = ScramKeys(
            mechanism=mechanism,
            salt=bytes(salt),
            iterations=iterations,
            stored_key=bytes(stored_key),
            server_key=bytes(server_key),
            changed_at=changed_at,
        )
        keys[name] = (*keys.get(name, ()), key)
    return EveryUser(keys, bytes(secret))


def keep(connection: Connection, name: str, keys: Iterable[ScramKeys], *, is_new: bool) -> None:
    """Raises RegistryError if the user exists with `is_new`, or is missing without."""
    gone = connection.execute("DELETE FROM served_users WHERE name = %s", (name,)).rowcount
    if is_new and gone:
        raise RegistryError("there is a user of this name: `archiver users password` gives them another", user=name)
    if not is_new and not gone:
        raise RegistryError("there is no user of this name: see `archiver users list`", user=name)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO served_users (name, mechanism, salt, iterations, stored_key, server_key)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (name, key.mechanism, key.salt, key.iterations, key.stored_key, key.server_key)
                for key in sorted(keys, key=lambda entry: entry.mechanism)
            ],
        )


def remove(connection: Connection, name: str) -> None:
    """Raises RegistryError if the user is missing."""
    if not connection.execute("DELETE FROM served_users WHERE name = %s", (name,)).rowcount:
        raise RegistryError("there is no user of this name: see `archiver users list`", user=name)
