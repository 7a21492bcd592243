"""Users in the registry's Postgres. They are written by `archiver users`, and only read by servers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from archiver.access.passwords import (
    DEFAULT_ITERATIONS,
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    Mechanism,
    keys_of_password,
)
from archiver.access.users import KnownUsers
from archiver.errors import ConfigError
from catalog.registry import Registry, ScramKeys

_LOG = logging.getLogger(__name__)
_MOST_NAME = 256
_LEAST_PASSWORD = 8
_ANSWERS_WITHIN = 5.0
"""Seconds after which a registry that says nothing is away: a connection that was cut silently is made anew."""


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user as people see them."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: int
    changed_at: datetime | None


class RegistryUsers:
    """Reads the users of a registry, which is opened when it is first needed. Slow: call it in a worker's thread."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = Lock()
        self._registry: Registry | None = None
        self._unusable: frozenset[str] = frozenset()

    def load(self) -> KnownUsers:
        """All users. Raises the registry's errors."""
        with self._lock:
            if self._registry is None:
                self._registry = Registry(self._dsn, connections=1, answers_within=_ANSWERS_WITHIN)
            found = self._registry.users.every()
        known = {name: [one for one in keys if one.mechanism in MECHANISMS] for name, keys in found.keys.items()}
        self._tell(frozenset(name for name, keys in known.items() if not all(map(_is_usable, keys))))
        usable = {name: {one.mechanism: one for one in keys if _is_usable(one)} for name, keys in known.items()}
        return KnownUsers.of(usable, found.secret)

    def _tell(self, unusable: frozenset[str]) -> None:
        """Name users whose keys can't be used, once."""
        if unusable - self._unusable:
            _LOG.error(
                "users can't come in, as their passwords aren't hashed %d to %d times: %s. Give them a password again,"
                " with `archiver users password`",
                LEAST_ITERATIONS,
                MOST_ITERATIONS,
                ", ".join(sorted(unusable)),
            )
        self._unusable = unusable

    def close(self) -> None:
        """Close the registry."""
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None


class UserAccounts:
    """Adds, changes, lists and removes users. Each call is a transaction of its own."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def set_password(
        self,
        name: str,
        password: str,
        *,
        is_new: bool,
        mechanisms: Sequence[Mechanism] = MECHANISMS,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Keep the keys of a password. ConfigError for a name or a password that can't be one."""
        _check(name, password, iterations)
        keys = [keys_of_password(each, password, iterations) for each in dict.fromkeys(mechanisms)]
        with self._opened() as registry:
            registry.users.keep(name, keys, is_new=is_new)

    def remove(self, name: str) -> None:
        """Remove a user."""
        with self._opened() as registry:
            registry.users.remove(name)

    def every(self) -> Iterable[ListedUser]:
        """All users, by name."""
        with self._opened() as registry:
            found = registry.users.every()
        return [
            ListedUser(
                name,
                tuple(each.mechanism for each in keys),
                min(each.iterations for each in keys),
                max((each.changed_at for each in keys if each.changed_at), default=None),
            )
            for name, keys in found.keys.items()
        ]

    @contextmanager
    def _opened(self) -> Iterator[Registry]:
        with Registry(self._dsn, connections=1) as registry:
            yield registry


def _check(name: str, password: str, iterations: int) -> None:
    if not name or len(name) > _MOST_NAME or not name.isprintable() or name != name.strip() or "*" in name:
        raise ConfigError(
            "this can't be a user's name: up to 256 printable characters, without * and without spaces around them",
            user=name,
        )
    if len(password) < _LEAST_PASSWORD or "\0" in password:
        raise ConfigError(f"the password is too short: at least {_LEAST_PASSWORD} characters", user=name)
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ConfigError(
            f"{iterations} iterations can't be used: {LEAST_ITERATIONS} to {MOST_ITERATIONS}", option="--iterations"
        )


def _is_usable(keys: ScramKeys) -> bool:
    """Whether the registry asks for no more hashing than a server does for a client it doesn't know yet."""
    return LEAST_ITERATIONS <= keys.iterations <= MOST_ITERATIONS
