"""Metadata of records: names and values that users give to a key or to offsets (docs/adr/0109)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self, TypeAlias

FORMAT: Final = 1
MOST_ENTRIES: Final = 10_000
"""The entries of a topic, with their history."""


@dataclass(frozen=True, slots=True, order=True)
class OfKey:
    key: bytes


@dataclass(frozen=True, slots=True, order=True)
class OfOffsets:
    """Half-open offsets of a partition."""

    partition: int
    start_offset: int
    end_offset: int

    def meets(self, spans: Mapping[int, Sequence[tuple[int, int]]]) -> bool:
        """Whether some of the offsets are in spans, given by partition."""
        return any(start < self.end_offset and self.start_offset < end for start, end in spans.get(self.partition, ()))


MetadataTarget: TypeAlias = OfKey | OfOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataEntry:
    """A value that was set, or deleted if it is None. `salt` keeps `digest` from being guessed."""

    id: str
    target: MetadataTarget
    name: str
    value: str | None
    time: datetime
    sequence: int
    author: str
    salt: str = field(repr=False)

    @property
    def rank(self) -> tuple[datetime, int, str]:
        """The entry with the highest rank is the latest."""
        return self.time, self.sequence, self.id

    @property
    def digest(self) -> str:
        """A hash of target, name and value, which only an owner of the salt can test."""
        content = {name: part for name, part in self.to_json().items() if name in {"salt", "target", "name", "value"}}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        match self.target:
            case OfKey(key):
                target: dict[str, Any] = {"key": key.hex()}
            case OfOffsets(partition, start, end):
                target = {"partition": partition, "offsets": [start, end]}
        return {
            "format": FORMAT,
            "id": self.id,
            "target": target,
            "name": self.name,
            "value": self.value,
            "time": self.time.isoformat(timespec="microseconds"),
            "sequence": self.sequence,
            "author": self.author,
            "salt": self.salt,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        plain = {name: part for name, part in value.items() if name not in {"format", "target", "time"}}
        return cls(target=_target(value["target"]), time=datetime.fromisoformat(value["time"]), **plain)


def _target(value: Mapping[str, Any]) -> MetadataTarget:
    return OfKey(bytes.fromhex(value["key"])) if "key" in value else OfOffsets(value["partition"], *value["offsets"])


def current(entries: Iterable[MetadataEntry]) -> tuple[MetadataEntry, ...]:
    """The latest entry of each target and name, in order of being set. Deleted ones are left out."""
    latest: dict[tuple[MetadataTarget, str], MetadataEntry] = {}
    for entry in sorted(entries, key=lambda entry: entry.rank):
        latest[entry.target, entry.name] = entry
    return tuple(sorted((entry for entry in latest.values() if entry.value is not None), key=lambda entry: entry.rank))
