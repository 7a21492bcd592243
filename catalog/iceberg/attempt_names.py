"""Names of the manifests that our commits write, by which they are known as ours (docs/concepts.md, step 4).

Every Iceberg writer names its manifests after a UUID. Ours is of version 8: random, with a check over it and the
table's UUID, so that no other writer's manifest, and none of another table, is ever taken for ours.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self
from uuid import UUID

_CHECKED: Final = 12
"""So many bytes come first; four of check follow."""
_VERSION: Final = 8 << 76
_VERSION_MASK: Final = 0xF << 76
_VARIANT: Final = 0b10 << 62
_VARIANT_MASK: Final = 0b11 << 62
_UUID = r"(?P<uuid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_MANIFEST: Final = re.compile(_UUID + r"-m\d+\.avro")
_LIST: Final = re.compile(r"snap-\d+-\d+-" + _UUID + r"\.avro")


def new_attempt_id(table: UUID) -> UUID:
    """A UUID for the manifests of one attempt to commit to the table with this UUID."""
    drawn = int.from_bytes(secrets.token_bytes(16))
    marked = drawn & ~_VERSION_MASK & ~_VARIANT_MASK | _VERSION | _VARIANT
    head = marked.to_bytes(16)[:_CHECKED]
    return UUID(bytes=head + _check(table, head))


def is_ours(attempt: UUID, table: UUID) -> bool:
    """Whether a UUID was made by `new_attempt_id` for this table."""
    head = attempt.bytes[:_CHECKED]
    return attempt.int & _VERSION_MASK == _VERSION and attempt.bytes[_CHECKED:] == _check(table, head)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestName:
    """What a manifest's name says: the UUID of who wrote it, and whether it is a snapshot's list of manifests."""

    uuid: UUID
    is_list: bool

    @classmethod
    def of(cls, name: str) -> Self | None:
        """Read a file name; None where no writer of manifests gave it."""
        for pattern, is_list in ((_MANIFEST, False), (_LIST, True)):
            if found := pattern.fullmatch(name):
                return cls(uuid=UUID(found["uuid"]), is_list=is_list)
        return None


def _check(table: UUID, head: bytes) -> bytes:
    return blake2b(table.bytes + head, digest_size=4, person=b"archiver").digest()
