"""The stored keys of a password (RFC 5802)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final, Literal, TypeAlias, get_args

from catalog.registry import ScramKeys

Mechanism: TypeAlias = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 250_000
DEFAULT_ITERATIONS: Final = 16_384
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each mechanism."""
_SALT_BYTES: Final = 24


def keys_of_password(mechanism: Mechanism, password: str, iterations: int = DEFAULT_ITERATIONS) -> ScramKeys:
    """Slow, on purpose."""
    return derived_keys(mechanism, password, secrets.token_bytes(_SALT_BYTES), iterations)


def derived_keys(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramKeys:
    named = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(named, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", named)
    return ScramKeys(
        mechanism=mechanism,
        salt=salt,
        iterations=iterations,
        stored_key=hashlib.new(named, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", named),
    )


def keys_of_nobody(mechanism: Mechanism, name: str, *, secret: bytes, iterations: int) -> ScramKeys:
    """Return keys that match no password. The salt is constant, as if the user existed."""

    def made(what: bytes) -> bytes:
        return hmac.digest(secret, what + mechanism.encode() + b"\0" + name.encode(), HASHES[mechanism])

    return ScramKeys(
        mechanism=mechanism,
        salt=made(b"salt")[:_SALT_BYTES],
        iterations=iterations,
        stored_key=secrets.token_bytes(len(made(b""))),
        server_key=secrets.token_bytes(len(made(b""))),
    )


def is_password(keys: ScramKeys, password: str) -> bool:
    """Slow, on purpose; compares in constant time."""
    derived = derived_keys(keys.mechanism, password, keys.salt, keys.iterations)
    return hmac.compare_digest(derived.stored_key, keys.stored_key)
