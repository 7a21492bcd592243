"""A trail's chain in the store. Foreign objects must neither be adopted nor stop a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from archiver.audit.acts import NO_RECORDS, Evolved
from archiver.audit.entry import FIRST_PREV, hash_of
from archiver.audit.folder import TrailFolder
from archiver.errors import StorageError
from catalog.ranges.legal_holds import CONFIG_HOLD
from catalog.registry.audit_chains import ChainHead


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChain:
    """The entries until the chain breaks, at the object `broken_at`.

    `acts` are numbers by act, `hashes` hashes by number.
    """

    head: ChainHead
    acts: tuple[tuple[int, str], ...]
    hashes: Mapping[int, str]
    broken_at: str | None

    @classmethod
    def read(cls, folder: TrailFolder, table_uuid: UUID) -> Self:
        """Raises subclasses of StorageError."""
        stored = {line.place: line for line in folder.lines()}
        head = ChainHead(table_uuid=table_uuid, entries=0, last_hash=FIRST_PREV, digest=NO_RECORDS)
        acts: list[tuple[int, str]] = []
        hashes = {0: FIRST_PREV}
        for number in sorted(stored):
            line = stored[number]
            following = _following(head, number, line.data)
            if following is None:
                return cls(head=head, acts=tuple(acts), hashes=hashes, broken_at=line.path)
            head, act_id = following
            acts.append((number, act_id))
            hashes[number] = head.last_hash
        return cls(head=head, acts=tuple(acts), hashes=hashes, broken_at=None)

    def check_goes_on(self, number: int, last_hash: str, folder: TrailFolder) -> None:
        """Raises StorageError unless the chain is intact and entry `number` has this hash."""
        if self.broken_at is None and self.hashes.get(number) == last_hash:
            return
        raise StorageError(
            "the audit trail in the store isn't the one that the registry knows: an entry was changed, dropped or added"
            " by others. Entries wait in the registry until it is restored; `archiver audit check` says what is wrong",
            file=self.broken_at or folder.path,
            entry=number,
        )


def _following(head: ChainHead, number: int, line: bytes) -> tuple[ChainHead, str] | None:
    try:
        entry: Any = json.loads(line)
        if (number, entry["seq"], entry["prev"]) != (head.entries + 1, number, head.last_hash):
            return None
        version = int(entry["details"]["schema_version"]) if entry["act"] == Evolved.kind else 0
        holds = int(entry["details"]["change"]) if entry["details"].get("hold") == CONFIG_HOLD else 0
        following = ChainHead(
            table_uuid=head.table_uuid,
            entries=number,
            last_hash=hash_of(line),
            digest=entry["digest"]["after"],  # None if unknown
            schema_version=max(version, head.schema_version),
            config_holds=max(holds, head.config_holds),
        )
        return following, str(entry["act_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
