"""Renews vended credentials, and remembers them process-wide."""

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
"""Request new credentials this long before the current ones expire."""
_PAUSE_SECONDS: Final = 1.0
"""Pause before the next request if the catalog had nothing newer."""
_REMEMBERED: Final = 512


class CredentialVendor(Protocol):
    """Picklable; equal values are for the same table."""

    def load(self) -> dict[str, str]:
        """Return FileIO properties. Raises subclasses of TableError."""

    def __hash__(self) -> int: ...


@dataclass(slots=True)
class _Renewals:
    lock: threading.Lock = field(default_factory=threading.Lock)
    newer: OrderedDict[Properties, Properties] = field(default_factory=OrderedDict)
    asking: dict[CredentialVendor, threading.Lock] = field(default_factory=dict)
    in_vain: dict[CredentialVendor, float] = field(default_factory=dict)


_KNOWN: Final = _Renewals()


def latest(properties: Properties) -> Properties:
    with _KNOWN.lock:
        while (newer := _KNOWN.newer.get(properties)) is not None:
            properties = newer
    return properties


def seconds_left(properties: Properties) -> float | None:
    """None if the credentials have no end."""
    until = expires_ms(dict(properties))
    return None if until is None else until / 1_000 - time.time()


def renewed_ahead(source: CredentialVendor, properties: Properties) -> Properties:
    """Renewed if they expire soon."""
    properties = latest(properties)
    left = seconds_left(properties)
    if left is None or left > EARLY_SECONDS or time.monotonic() < _KNOWN.in_vain.get(source, 0.0):
        return properties
    with suppress(TableError):  # these may still be valid; if storage denies them, they are loaded again
        _renew(source, properties)
    fresh = latest(properties)
    if fresh == properties:
        _KNOWN.in_vain[source] = time.monotonic() + _PAUSE_SECONDS
    return fresh


def renew_after(failure: StorageError, source: CredentialVendor, used: Properties) -> None:
    """Replace denied properties.

    Raises CredentialsExpired if they expired and the catalog has no new ones, `failure` if they are valid.
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


def _renew(source: CredentialVendor, used: Properties) -> None:
    with _KNOWN.lock:
        asking = _KNOWN.asking.setdefault(source, threading.Lock())
    with asking:
        if latest(used) != used:
            return  # another thread was faster
        fresh = tuple(sorted(source.load().items()))
        if credentials(dict(fresh)) == credentials(dict(used)):
            return
        with _KNOWN.lock:
            _KNOWN.newer.pop(fresh, None)  # else credentials that come back would make `latest` go in a circle
            _KNOWN.newer[used] = fresh
            while len(_KNOWN.newer) > _REMEMBERED:
                _KNOWN.newer.popitem(last=False)
