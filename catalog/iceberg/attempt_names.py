"""Names of the archiver's manifests (docs/concepts.md, step 4).

A version 8 UUID: random bytes, and a checksum with the table's UUID.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self
from uuid import UUID

_CHECKED: Final = 12
"""The number of random bytes. Four bytes of checksum follow."""
_VERSION: Final = 8 << 76
_VERSION_MASK: Final = 0xF << 76
_VARIANT: Final = 0b10 << 62
_VARIANT_MASK: Final = 0b11 << 62
_UUID = r"(?P<uuid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_MANIFEST: Final = re.compile(_UUID + r"-m\d+\.avro")
_LIST: Final = re.compile(r"snap-\d+-\d+-" + _UUID + r"\.avro")


def new_attempt_id(table: UUID) -> UUID:
    drawn = int.from_bytes(secrets.token_bytes(16))
    marked = drawn & ~_VERSION_MASK & ~_VARIANT_MASK | _VERSION | _VARIANT
    head = marked.to_bytes(16)[:_CHECKED]
    return UUID(bytes=head + _check(table, head))


def is_ours(attempt: UUID, table: UUID) -> bool:
    head = attempt.bytes[:_CHECKED]
    return attempt.int & _VERSION_MASK == _VERSION and attempt.bytes[_CHECKED:] == _check(table, head)


def is_of_archiver(attempt: UUID) -> bool:
    return attempt.int & _VERSION_MASK == _VERSION and attempt.int & _VARIANT_MASK == _VARIANT


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestName:
    uuid: UUID
    is_list: bool

    @classmethod
    def of(cls, name: str) -> Self | None:
        for pattern, is_list in ((_MANIFEST, False), (_LIST, True)):
            if match := pattern.fullmatch(name):
                return cls(uuid=UUID(match["uuid"]), is_list=is_list)
        return None


def _check(table: UUID, head: bytes) -> bytes:
    return blake2b(table.bytes + head, digest_size=4, person=b"archiver").digest()
