"""Ed25519 signatures of JSON documents.

The signed form has sorted keys, no spaces, UTF-8 and no fractions.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from archiver.errors import ConfigError, SignatureInvalid

ALGORITHM: Final = "ed25519"
MAKE_KEY: Final = "archiver audit keygen signing.pem"
MAKE_PUBLIC_KEY: Final = "openssl pkey -in signing.pem -pubout -out signing.pub.pem"


def canonical(document: Mapping[str, Any]) -> bytes:
    """Raises ValueError for a fraction, whose text isn't unique."""
    _refuse_fractions(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """`key_id` is the first 16 hex digits of the public key's SHA-256."""

    key_id: str
    value: bytes
    algorithm: str = ALGORITHM

    def to_json(self) -> dict[str, Any]:
        return {"algorithm": self.algorithm, "key_id": self.key_id, "value": b64encode(self.value).decode()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises SignatureInvalid."""
        try:
            signature = cls(
                algorithm=str(value["algorithm"]),
                key_id=str(value["key_id"]),
                value=b64decode(value["value"], validate=True),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SignatureInvalid("the document's signature is incomplete or damaged", cause=repr(error)) from error
        return signature


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    id: str
    _key: Ed25519PublicKey = field(repr=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises ConfigError."""
        data = _read(path, "public key")
        try:
            key = load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise _no_key(path, "public", MAKE_PUBLIC_KEY) from error
        if not isinstance(key, Ed25519PublicKey):
            raise _no_key(path, "public", MAKE_PUBLIC_KEY)
        return cls(id=_id(key), _key=key)

    def check(self, document: Mapping[str, Any], signature: Signature) -> None:
        """Raises SignatureInvalid unless the key's holder signed this document."""
        if signature.algorithm != ALGORITHM:
            raise SignatureInvalid(
                "the document is signed by an algorithm that isn't known: check it with a newer archiver",
                algorithm=signature.algorithm,
                known=ALGORITHM,
            )
        if signature.key_id != self.id:
            raise SignatureInvalid(
                "the document is signed by another key: give the public key that belongs to it",
                signed_by=signature.key_id,
                given=self.id,
            )
        try:
            self._key.verify(signature.value, canonical(document))
        except (InvalidSignature, ValueError) as error:
            raise SignatureInvalid(
                "the document was changed after it was signed, or its signature was", signed_by=self.id
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    public: PublicKey
    _key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def load(cls, path: Path, *, name: str = "audit.signing_key") -> Self:
        """The PEM file has no password. Raises ConfigError."""
        data = _read(path, name)
        try:
            key = load_pem_private_key(data, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _no_key(path, "private", MAKE_KEY, key=name) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _no_key(path, "private", MAKE_KEY, key=name)
        public = key.public_key()
        return cls(public=PublicKey(id=_id(public), _key=public), _key=key)

    @classmethod
    def generate(cls, path: Path, public_path: Path) -> Self:
        """Raises ConfigError if a file exists."""
        key = Ed25519PrivateKey.generate()
        public = key.public_key()
        private_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write_new(public_path, public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), mode=0o644)
        _write_new(path, private_pem, mode=0o600)
        return cls(public=PublicKey(id=_id(public), _key=public), _key=key)

    @property
    def id(self) -> str:
        return self.public.id

    def sign(self, document: Mapping[str, Any]) -> Signature:
        """Raises ValueError for a fraction."""
        return Signature(key_id=self.id, value=self._key.sign(canonical(document)))


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "The key can't be read: check the path and its rights", key=name, file=str(path), cause=str(error)
        ) from error


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
    except FileExistsError:
        raise ConfigError(
            "There is a file already, and keys aren't replaced: name another one", file=str(path)
        ) from None
    except OSError as error:
        raise ConfigError("The key can't be written", file=str(path), cause=str(error)) from error


def _no_key(path: Path, kind: str, command: str, **context: str) -> ConfigError:
    return ConfigError(
        f"The file holds no Ed25519 {kind} key in PEM without a password: make one with `{command}`",
        file=str(path),
        **context,
    )


def _id(key: Ed25519PublicKey) -> str:
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]


def _refuse_fractions(value: object) -> None:
    match value:
        case float():
            message = f"a signed document can't have the fraction {value}: write it as text or in smaller units"
            raise ValueError(message)
        case Mapping():
            for name, item in cast("Mapping[object, object]", value).items():
                if not isinstance(name, str):
                    message = f"a signed document has names that are text, not {name!r}"
                    raise TypeError(message)
                _refuse_fractions(item)
        case list() | tuple():
            for item in value:
                _refuse_fractions(item)
        case _:
            pass
