"""Users in the registry. Servers only read them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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
ANSWERS_WITHIN = 5.0
"""Seconds after which a silent registry counts as away, and the connection is opened again."""


@dataclass(frozen=True, slots=True)
class ListedUser:
    """`iterations` are of its SCRAM credentials."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: int
    changed_at: datetime | None


class RegistryUsers:
    """Reads users. Blocking: call it in a worker thread."""

    def __init__(self, dsn: str, *, connect: Callable[..., Registry] = Registry) -> None:
        self._dsn = dsn
        self._connect = connect
        self._lock = Lock()
        self._registry: Registry | None = None
        self._unusable: frozenset[str] = frozenset()

    def load(self) -> KnownUsers:
        """Raises subclasses of RegistryError."""
        with self._lock:
            if self._registry is None:
                self._registry = self._connect(self._dsn, connections=1, answers_within=ANSWERS_WITHIN)
            registered = self._registry.users.every()
        supported = {
            name: [key for key in keys if key.mechanism in MECHANISMS] for name, keys in registered.keys.items()
        }
        self._tell(frozenset(name for name, keys in supported.items() if not all(map(_is_usable, keys))))
        usable = {name: {key.mechanism: key for key in keys if _is_usable(key)} for name, keys in supported.items()}
        return KnownUsers.with_keys(usable, registered.secret)

    def _tell(self, unusable: frozenset[str]) -> None:
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
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None


class UserAccounts:
    """Changes users. Each call is a transaction."""

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
        """Raises ConfigError for an invalid name or password."""
        _check(name, password, iterations)
        keys = [keys_of_password(mechanism, password, iterations) for mechanism in dict.fromkeys(mechanisms)]
        with self._opened() as registry:
            registry.users.keep(name, keys, is_new=is_new)

    def remove(self, name: str) -> None:
        with self._opened() as registry:
            registry.users.remove(name)

    def every(self) -> Iterable[ListedUser]:
        with self._opened() as registry:
            registered = registry.users.every()
        return [
            ListedUser(
                name,
                tuple(key.mechanism for key in keys),
                min(key.iterations for key in keys),
                max((key.changed_at for key in keys if key.changed_at), default=None),
            )
            for name, keys in registered.keys.items()
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
    return LEAST_ITERATIONS <= keys.iterations <= MOST_ITERATIONS
