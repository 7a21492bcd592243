"""Vended credentials renewed: what replaced which, for all of a process, each asked for by one thread at a time.

A catalog's credentials live for minutes, a backfill or a replay for days. A store made with credentials that have
ended goes on with those that took their place, wherever it was made.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from archiver.errors import CredentialsExpired, StorageError
from catalog.errors import TableError
from catalog.iceberg.credentials import credentials, expires_ms

Properties: TypeAlias = tuple[tuple[str, str], ...]

EARLY_SECONDS: Final = 30.0
"""New credentials are asked for so long before the old ones end."""
_PAUSE_SECONDS: Final = 1.0
"""A catalog that gave nothing newer ahead of time isn't asked again at once."""
_REMEMBERED: Final = 512


class CredentialSource(Protocol):
    """Where new credentials come from. Values of this type pickle, and equal ones ask the same."""

    def load(self) -> dict[str, str]:
        """FileIO properties with the credentials as they are vended now. Raises the leaves of TableError."""

    def __hash__(self) -> int: ...


@dataclass(slots=True)
class _Renewals:
    lock: threading.Lock = field(default_factory=threading.Lock)
    newer: OrderedDict[Properties, Properties] = field(default_factory=OrderedDict)
    asking: dict[CredentialSource, threading.Lock] = field(default_factory=dict)
    in_vain: dict[CredentialSource, float] = field(default_factory=dict)


_KNOWN: Final = _Renewals()


def latest(properties: Properties) -> Properties:
    """The properties that took the place of these, as far as this process knows."""
    with _KNOWN.lock:
        while (newer := _KNOWN.newer.get(properties)) is not None:
            properties = newer
    return properties


def seconds_left(properties: Properties) -> float | None:
    """How long the credentials still hold, by this machine's clock; None where nobody says."""
    until = expires_ms(dict(properties))
    return None if until is None else until / 1_000 - time.time()


def renewed_ahead(source: CredentialSource, properties: Properties) -> Properties:
    """The latest properties, renewed if they are about to end; a catalog that has none now is no error yet."""
    properties = latest(properties)
    left = seconds_left(properties)
    if left is None or left > EARLY_SECONDS or time.monotonic() < _KNOWN.in_vain.get(source, 0.0):
        return properties
    with suppress(TableError):  # they may hold for a while yet; once storage denies them, the catalog is asked again
        _renew(source, properties)
    fresh = latest(properties)
    if fresh == properties:
        _KNOWN.in_vain[source] = time.monotonic() + _PAUSE_SECONDS
    return fresh


def renew_after(failure: StorageError, source: CredentialSource, used: Properties) -> None:
    """Have others take the place of properties that storage denied.

    Raises CredentialsExpired where they have ended and the catalog gives no others now, and `failure` where it gives
    the same ones that haven't.
    """
    try:
        _renew(source, used)
    except TableError as error:
        if error.retryable:
            raise CredentialsExpired(
                f"{failure.message}. The catalog that vended the credentials gives no others now",
                **failure.context,
                catalog_error=str(error),
            ) from failure
        raise failure from error
    if latest(used) == used:
        left = seconds_left(used)
        if left is not None and left <= 0:
            raise CredentialsExpired(
                f"{failure.message}. The catalog vends credentials that have ended: compare its clock with this one's",
                **failure.context,
            ) from failure
        raise failure


def _renew(source: CredentialSource, used: Properties) -> None:
    with _KNOWN.lock:
        asking = _KNOWN.asking.setdefault(source, threading.Lock())
    with asking:
        if latest(used) != used:
            return  # another thread was faster
        fresh = tuple(sorted(source.load().items()))
        if credentials(dict(fresh)) == credentials(dict(used)):
            return
        with _KNOWN.lock:
            _KNOWN.newer.pop(fresh, None)  # one that took turns with it would lead in a circle
            _KNOWN.newer[used] = fresh
            while len(_KNOWN.newer) > _REMEMBERED:
                _KNOWN.newer.popitem(last=False)
