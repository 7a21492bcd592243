"""The token issuer's public keys (JWKS, RFC 7517), cached.

An unknown key causes a fetch, at a bounded rate. If it fails, the last keys are used.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import jwt
import requests

from archiver.errors import AuthenticationFailed, ConfigError, ServeError

_LOG = logging.getLogger(__name__)
_MOST_BYTES: Final = 1 << 20
_TIMEOUT: Final = 10.0
_PATIENCE: Final = 1.0
"""Seconds that a token with a known key waits for keys that are being loaded. Then the last keys are used."""
_PIECE_BYTES: Final = 64 << 10
_LEAST_SECONDS: Final = 10.0
_KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


class TokenKeys:
    """Use it from one event loop."""

    def __init__(
        self,
        load: Callable[[], Awaitable[Sequence[jwt.PyJWK]]],
        *,
        kept_seconds: float = 3600.0,
        least_seconds: float = _LEAST_SECONDS,
    ) -> None:
        """`load` runs at most every `least_seconds`, and at least every `kept_seconds` while tokens arrive."""
        self._load = load
        self._kept_seconds = kept_seconds
        self._least_seconds = least_seconds
        self._keys: Sequence[jwt.PyJWK] = ()
        self._tried_at = float("-inf")
        self._loading: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Raises ServeError if the keys can't be loaded."""
        self._keys = await self._load()
        self._tried_at = asyncio.get_running_loop().time()

    async def fitting(self, kid: object, algorithm: str) -> list[Any]:
        """Raises AuthenticationFailed without any."""
        age = asyncio.get_running_loop().time() - self._tried_at
        key = self._found(kid, algorithm)
        if age > self._kept_seconds or (not key and age > self._least_seconds):
            if self._loading is None or self._loading.done():
                self._loading = asyncio.get_running_loop().create_task(self._load_again())
            await asyncio.wait({self._loading}, timeout=_PATIENCE if key else _TIMEOUT)
            key = self._found(kid, algorithm)
        if not key:
            raise AuthenticationFailed("the token is signed with a key that its issuer doesn't have")
        return key

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def _found(self, kid: object, algorithm: str) -> list[Any]:
        return [
            key.key
            for key in self._keys
            if key.key_type == _KINDS[algorithm[:2]]
            and key.public_key_use in (None, "sig")
            and (kid is None or key.key_id == kid)
        ]

    async def _load_again(self) -> None:
        try:
            self._keys = await self._load()
        except Exception as error:  # noqa: BLE001 - after any error, the last keys are used
            _LOG.warning("keys of tokens can't be loaded; those that were known last are used", exc_info=error)
        self._tried_at = asyncio.get_running_loop().time()


def keys_at(url: str, ca_file: Path | None) -> Sequence[jwt.PyJWK]:
    """Raises ServeError. Blocking: call it in a worker thread."""
    try:
        with requests.get(
            url, timeout=_TIMEOUT, stream=True, allow_redirects=False, verify=str(ca_file) if ca_file else True
        ) as response:
            if response.status_code != requests.codes.ok:
                raise ServeError(
                    "the address of the keys doesn't answer with keys", url=url, status=response.status_code
                )
            text = b""
            for piece in response.iter_content(_PIECE_BYTES):  # raises the errors of requests
                text += piece
                if len(text) > _MOST_BYTES:
                    break
    except (requests.RequestException, OSError) as error:
        raise ServeError(f"the address of the keys doesn't answer: {error}", url=url) from error
    return parsed(text, url=url)


def keys_in(path: Path) -> Sequence[jwt.PyJWK]:
    """Raises ServeError if the file has none."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ServeError(f"the file of the keys can't be read: {error.strerror}", path=str(path)) from error
    return parsed(text, path=str(path))


def parsed(text: bytes, **where: str) -> Sequence[jwt.PyJWK]:
    """Raises ServeError if the document has no public keys."""
    try:
        keys = jwt.PyJWKSet.from_dict(json.loads(text)).keys if len(text) <= _MOST_BYTES else []
    except (ValueError, AttributeError, TypeError, RecursionError, jwt.PyJWTError) as error:
        raise ServeError(f"the keys can't be read: {error}", **where) from None
    keys = [key for key in keys if key.key_type != "oct"]
    if not keys:
        raise ServeError("there are no public keys here", **where)
    return keys


def config_error(error: ServeError, key: str) -> ConfigError:
    return ConfigError(error.message, key=key, **error.context)
