"""The server's part of SCRAM (RFC 5802), as in Kafka.

Unknown users get a salt too, so that only the last step refuses them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final

from archiver.access.passwords import HASHES, Mechanism
from archiver.errors import AuthenticationFailed
from catalog.registry import ScramKeys

_NONCE_BYTES: Final = 24
_FIRST: Final = re.compile(
    r"(?P<header>(?P<binding>[ny]),(?P<authzid>a=[^,]*)?,)(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[!-+\--~]+)(?:,.*)?)",
    re.DOTALL,
)
_FINAL: Final = re.compile(
    r"(?P<bare>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[^,]+)*?),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_MALFORMED: Final = "a message of the exchange isn't SCRAM's"


class ScramExchange:
    def __init__(self, mechanism: Mechanism, keys_of: Callable[[str], tuple[ScramKeys, bool]]) -> None:
        """`keys_of` returns a name's keys, and whether the user exists."""
        self._hash = HASHES[mechanism]
        self._keys_of = keys_of
        self._is_known = False
        self.name = ""

    def challenge(self, message: bytes) -> bytes:
        """Raises AuthenticationFailed if the message is malformed."""
        matched = _FIRST.fullmatch(_text(message))
        if matched is None:
            raise AuthenticationFailed(_MALFORMED)
        self.name = _unescaped(matched["name"])
        authzid = _unescaped((matched["authzid"] or "").removeprefix("a="))
        if authzid not in ("", self.name):
            raise AuthenticationFailed("a client may authenticate for itself only")
        self._keys, self._is_known = self._keys_of(self.name)
        self._header = matched["header"]
        self._nonce = matched["nonce"] + secrets.token_urlsafe(_NONCE_BYTES)
        salt = b64encode(self._keys.salt).decode()
        self._signed = f"{matched['bare']},r={self._nonce},s={salt},i={self._keys.iterations}"
        return self._signed[len(matched["bare"]) + 1 :].encode()

    def verdict(self, message: bytes) -> bytes:
        """Return the server's signature. Raises AuthenticationFailed if the proof is wrong."""
        matched = _FINAL.fullmatch(_text(message))
        if matched is None:
            raise AuthenticationFailed(_MALFORMED)
        signed = f"{self._signed},{matched['bare']}".encode()
        signature = hmac.digest(self._keys.stored_key, signed, self._hash)
        proof = _bytes(matched["proof"])
        if len(proof) != len(signature):
            raise AuthenticationFailed(_MALFORMED)
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), self._keys.stored_key)
        is_own = hmac.compare_digest(matched["nonce"], self._nonce)
        is_bound = hmac.compare_digest(_bytes(matched["header"]), self._header.encode())
        if not (is_right and is_own and is_bound and self._is_known):
            raise AuthenticationFailed("the user or the password is wrong")
        return b"v=" + b64encode(hmac.digest(self._keys.server_key, signed, self._hash))


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed(_MALFORMED) from None


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationFailed(_MALFORMED) from None


def _unescaped(name: str) -> str:
    if re.search("=(?!2C|3D)", name):
        raise AuthenticationFailed(_MALFORMED)
    return name.replace("=2C", ",").replace("=3D", "=")
