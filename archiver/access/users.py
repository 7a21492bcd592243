"""Users, reloaded periodically. Valid while the registry is away."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from archiver.access.passwords import DEFAULT_ITERATIONS, MECHANISMS, Mechanism, keys_of_nobody
from catalog.registry import ScramKeys

_LOG = logging.getLogger(__name__)
_KNOWN_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 0.5
"""How long a client waits for users that are being loaded. Then the last loaded users count."""


@dataclass(frozen=True, slots=True)
class KnownUsers:
    """All users. `secret` makes salts for unknown ones."""

    keys: Mapping[str, Mapping[str, ScramKeys]]
    secret: bytes
    usual: Mapping[Mechanism, int]
    """The iterations that most users have, used for unknown users."""

    @classmethod
    def with_keys(cls, keys: Mapping[str, Mapping[str, ScramKeys]], secret: bytes) -> KnownUsers:
        usual: dict[Mechanism, int] = {}
        for mechanism in MECHANISMS:
            counts = Counter(key[mechanism].iterations for key in keys.values() if mechanism in key)
            usual[mechanism] = counts.most_common(1)[0][0] if counts else DEFAULT_ITERATIONS
        return cls(keys, secret, usual)

    def keys_of(self, name: str, mechanism: Mechanism) -> tuple[ScramKeys, bool]:
        """No password fits an unknown user's keys."""
        iterations = self.usual[mechanism]
        nobody = keys_of_nobody(mechanism, name, secret=self.secret, iterations=iterations)
        key = self.keys.get(name, {}).get(mechanism)
        return (nobody, False) if key is None else (key, True)

    def any_keys_of(self, name: str) -> tuple[ScramKeys, bool]:
        keys = self.keys.get(name, {})
        mechanism: Mechanism = "SCRAM-SHA-512" if "SCRAM-SHA-512" in keys or not keys else "SCRAM-SHA-256"
        return self.keys_of(name, mechanism)


class Users:
    """A server's users, for one event loop."""

    def __init__(self, load: Callable[[], Awaitable[KnownUsers]], *, seconds: float = _KNOWN_SECONDS) -> None:
        self._load = load
        self._seconds = seconds
        self._known: KnownUsers | None = None
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        self._is_away = False

    async def begin(self) -> None:
        """Raises subclasses of RegistryError."""
        self._known = await self._load()
        self._asked_at = asyncio.get_running_loop().time()

    async def known(self) -> KnownUsers:
        """At most a few seconds old, while the registry answers."""
        if asyncio.get_running_loop().time() - self._asked_at > self._seconds:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.get_running_loop().create_task(self._ask())
            await asyncio.wait({self._asking}, timeout=_PATIENCE_SECONDS)
        assert self._known is not None
        return self._known

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        try:
            self._known = await self._load()
            self._is_away = False
        except Exception as error:  # noqa: BLE001 - after any error, the last loaded users stay valid
            if not self._is_away:
                _LOG.warning("users can't be looked up; those that were known last may come in", exc_info=error)
            self._is_away = True
        self._asked_at = asyncio.get_running_loop().time()
