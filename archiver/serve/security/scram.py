"""SCRAM (RFC 5802) as Kafka's clients speak it: the server's part of an exchange, and the keys that are stored.

The server never has a password: it keeps a salt and two keys, by which it can check a proof, and from which no proof
can be made. Who isn't known gets a salt of their own and goes through the same exchange: only its end says no.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from archiver.errors import AuthenticationFailed

Mechanism: TypeAlias = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 250_000
DEFAULT_ITERATIONS: Final = 16_384
_SALT_BYTES: Final = 24
_NONCE_BYTES: Final = 24
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_FIRST: Final = re.compile(
    r"(?P<header>(?P<binding>[ny]),(?P<authzid>a=[^,]*)?,)(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[!-+\--~]+)(?:,.*)?)",
    re.DOTALL,
)
_FINAL: Final = re.compile(
    r"(?P<bare>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[^,]+)*?),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_MALFORMED: Final = "a message of the exchange isn't SCRAM's"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys:
    """What is kept of a user's password for one mechanism."""

    mechanism: Mechanism
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, mechanism: Mechanism, password: str, iterations: int = DEFAULT_ITERATIONS) -> StoredKeys:
        """Make the keys of a password, with a salt of their own. Slow, on purpose."""
        return cls.derived(mechanism, password, secrets.token_bytes(_SALT_BYTES), iterations)

    @classmethod
    def derived(cls, mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> StoredKeys:
        """Derive the keys of a password with this salt."""
        named = _HASHES[mechanism]
        salted = hashlib.pbkdf2_hmac(named, password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", named)
        return cls(
            mechanism=mechanism,
            salt=salt,
            iterations=iterations,
            stored_key=hashlib.new(named, client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", named),
        )

    @classmethod
    def of_nobody(cls, mechanism: Mechanism, name: str, *, secret: bytes, iterations: int) -> StoredKeys:
        """Keys that no password has, for a user who isn't known: the same salt each time, as if there were a user."""

        def made(what: bytes) -> bytes:
            return hmac.digest(secret, what + mechanism.encode() + b"\0" + name.encode(), _HASHES[mechanism])

        return cls(
            mechanism=mechanism,
            salt=made(b"salt")[:_SALT_BYTES],
            iterations=iterations,
            stored_key=secrets.token_bytes(len(made(b""))),
            server_key=secrets.token_bytes(len(made(b""))),
        )

    def has_password(self, password: str) -> bool:
        """Whether this is the password. Slow, on purpose; compares in constant time."""
        found = StoredKeys.derived(self.mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(found.stored_key, self.stored_key)


class ScramExchange:
    """One client's exchange: its first message is answered by `challenge`, its last by `verdict`. No I/O."""

    def __init__(self, mechanism: Mechanism, keys_of: Callable[[str], tuple[StoredKeys, bool]]) -> None:
        """`keys_of` gives the keys of a name, and whether somebody has that name."""
        self._hash = _HASHES[mechanism]
        self._keys_of = keys_of
        self._is_known = False
        self.name = ""

    def challenge(self, message: bytes) -> bytes:
        """Answer the client's first message. AuthenticationFailed where it is none."""
        found = _FIRST.fullmatch(_text(message))
        if found is None:
            raise AuthenticationFailed(_MALFORMED)
        self.name = _unescaped(found["name"])
        authzid = _unescaped((found["authzid"] or "").removeprefix("a="))
        if authzid not in ("", self.name):
            raise AuthenticationFailed("a client may authenticate for itself only")
        self._keys, self._is_known = self._keys_of(self.name)
        self._header = found["header"]
        self._nonce = found["nonce"] + secrets.token_urlsafe(_NONCE_BYTES)
        salt = b64encode(self._keys.salt).decode()
        self._signed = f"{found['bare']},r={self._nonce},s={salt},i={self._keys.iterations}"
        return self._signed[len(found["bare"]) + 1 :].encode()

    def verdict(self, message: bytes) -> bytes:
        """Answer the client's last message: the server's signature. AuthenticationFailed where the proof is wrong."""
        found = _FINAL.fullmatch(_text(message))
        if found is None:
            raise AuthenticationFailed(_MALFORMED)
        signed = f"{self._signed},{found['bare']}".encode()
        signature = hmac.digest(self._keys.stored_key, signed, self._hash)
        proof = _bytes(found["proof"])
        if len(proof) != len(signature):
            raise AuthenticationFailed(_MALFORMED)
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), self._keys.stored_key)
        is_own = hmac.compare_digest(found["nonce"], self._nonce)
        is_bound = hmac.compare_digest(_bytes(found["header"]), self._header.encode())
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
