"""Entries of a trail (docs/audit.md). Their bytes are hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

from archiver.audit.acts import Act, Rewrote
from archiver.audit.signing import canonical
from catalog.digests import add_digests, subtract_digest
from catalog.ranges.legal_holds import CONFIG_HOLD
from catalog.registry.audit_chains import ChainHead, NewEntry

FORMAT: Final = 1
FIRST_PREV: Final = "0" * 64
"""The previous hash of the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    principal: str
    host: str
    version: str

    def to_json(self) -> dict[str, str]:
        return {"principal": self.principal, "host": self.host, "version": self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    cluster_id: str
    topic: str
    table: str
    table_uuid: str

    def to_json(self) -> dict[str, str]:
        return {
            "cluster_id": self.cluster_id,
            "topic": self.topic,
            "table": self.table,
            "table_uuid": self.table_uuid,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """`is_late`: recorded by a later run."""

    subject: Subject
    author: Mapping[str, str]
    time: str
    kind: str
    act_id: str
    details: Mapping[str, Any]
    added: str | None
    removed: str | None
    is_late: bool = False

    @classmethod
    def of_act(cls, act: Act, subject: Subject, author: Author, *, is_late: bool) -> Self:
        keeps_all = isinstance(act, Rewrote) and not act.leaves_out and act.added is None
        return cls(
            subject=subject,
            author=author.to_json(),
            time=timestamp(datetime.now(UTC)),
            kind=act.kind,
            act_id=act.id,
            details=act.to_json() | ({"keeps_all_records": True} if keeps_all else {}),
            added=act.added,
            removed=act.removed,
            is_late=is_late,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Parse `to_json`, or an entry."""
        return cls(
            subject=Subject(**{name: value[name] for name in ("cluster_id", "topic", "table", "table_uuid")}),
            author=value["by"],
            time=value["time"],
            kind=value["act"],
            act_id=value["act_id"],
            details=value["details"],
            added=value["digest"]["added"],
            removed=value["digest"]["removed"],
            is_late=value.get("late", False),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "time": self.time,
            "by": dict(self.author),
            **self.subject.to_json(),
            "act": self.kind,
            "act_id": self.act_id,
            "details": dict(self.details),
            "digest": {"added": self.added, "removed": self.removed},
            **({"late": True} if self.is_late else {}),
        }

    def found(self, snapshot_id: int | None) -> Self:
        """Found in the table later. Metadata commits have no snapshot."""
        details = {} if snapshot_id is None else {"snapshot_id": str(snapshot_id)}
        return replace(self, details={**self.details, **details}, is_late=True)

    def doubtful(self) -> Self:
        return replace(self, details={**self.details, "outcome": "unknown"}, is_late=True)

    def at(self, head: ChainHead) -> NewEntry:
        after = self._after(head.digest)
        content = self.to_json()
        digest = {"before": head.digest, **content["digest"], "after": after}
        line = canonical({**content, "seq": head.entries + 1, "prev": head.last_hash, "digest": digest})
        version = self.details.get("schema_version") if self.kind == "evolve" else None
        holds = self.details.get("change") if self.details.get("hold") == CONFIG_HOLD else None
        return NewEntry(
            line=line.decode(), hash=hash_of(line), digest=after, schema_version=version, config_holds=holds
        )

    def _after(self, before: str | None) -> str | None:
        if self.details.get("keeps_all_records"):
            return before
        total = add_digests((before, self.added))
        return None if total is None or self.removed is None else subtract_digest(total, self.removed)


def hash_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def timestamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
