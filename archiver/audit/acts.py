"""Acts on a table. Each becomes one audit entry, by its `id` (docs/audit.md).

`added` and `removed` are digests of records; None if unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from catalog.digests import add_digests
from catalog.model import TranslatedRange
from catalog.offset_range import OffsetRange
from catalog.ranges.legal_holds import CONFIG_HOLD, WHOLE_TOPIC
from catalog.ranges.rewrite import Rewrite

NO_RECORDS: Final = "0" * 32
"""The digest of no records."""

NotedKind: TypeAlias = Literal["hold", "release", "erase", "abandon", "orphans", "purge", "rebuild", "metadata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A new table (`create`), or one with `rows` (`adopt`)."""

    is_new: bool
    rows: int = 0
    files: int = 0
    digest: str | None = NO_RECORDS

    id: ClassVar[str] = "begin"

    @property
    def kind(self) -> str:
        return "create" if self.is_new else "adopt"

    @property
    def added(self) -> str | None:
        return self.digest

    @property
    def removed(self) -> str | None:
        return NO_RECORDS

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "files": self.files}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolved:
    version: int
    fingerprint: str

    kind: ClassVar[str] = "evolve"
    added: ClassVar[str | None] = NO_RECORDS
    removed: ClassVar[str | None] = NO_RECORDS

    @property
    def id(self) -> str:
        return f"schema-{self.version}"

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": self.version, "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """`commit_id` and `snapshot_id` are None if the snapshot had expired."""

    ranges: tuple[TranslatedRange, ...]
    commit_id: str | None
    snapshot_id: int | None = None

    kind: ClassVar[str] = "append"
    removed: ClassVar[str | None] = NO_RECORDS

    @property
    def id(self) -> str:
        """A range is appended once."""
        return f"append-{min(self.range_ids)}"

    @property
    def range_ids(self) -> tuple[str, ...]:
        return tuple(item.id for item in self.ranges)

    @property
    def added(self) -> str | None:
        return add_digests(item.digest for item in self.ranges)

    def to_json(self) -> dict[str, Any]:
        lost = _by_partition(OffsetRange.of_range(item) for item in self.ranges if item.lost)
        return {
            "commit_id": self.commit_id,
            "snapshot_id": _text(self.snapshot_id),
            "files": sum(len(item.files) for item in self.ranges),
            "rows": sum(item.rows for item in self.ranges),
            "offsets": _by_partition(map(OffsetRange.of_range, self.ranges)),
            "schema_versions": sorted({item.schema_version for item in self.ranges}),
            **({"accepted_gaps": lost} if lost else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrote:
    """Compaction, retention, erasure or reprocessing."""

    rewrite: Rewrite
    old_digest: str | None = None
    snapshot_id: int | None = None

    @property
    def kind(self) -> str:
        return self.rewrite.reason

    @property
    def id(self) -> str:
        return f"rewrite-{self.rewrite.commit_id}"

    @property
    def leaves_out(self) -> bool:
        return any(span.gone for group in self.rewrite.groups for span in group.all_spans)

    @property
    def added(self) -> str | None:
        return add_digests(file.digest for file in self.rewrite.new_files)

    @property
    def removed(self) -> str | None:
        return self.old_digest if self.leaves_out else self.added

    def to_json(self) -> dict[str, Any]:
        spans = [span for group in self.rewrite.groups for span in group.all_spans]
        gone = {
            name: count
            for name, count in (
                ("retired", sum(span.retired for span in spans)),
                ("erased", sum(span.erased for span in spans)),
                ("removed_by_others", sum(span.removed for span in spans)),
            )
            if count
        }
        why = sorted({group.why for group in self.rewrite.groups if group.why})
        return {
            "commit_id": self.rewrite.commit_id,
            "snapshot_id": _text(self.snapshot_id),
            "files_before": len(self.rewrite.old_paths),
            "files": len(self.rewrite.new_paths),
            "rows": sum(file.rows for file in self.rewrite.new_files),
            "offsets": _by_partition(map(OffsetRange.of_range, spans)),
            "schema_version": self.rewrite.schema_version,
            **({"left_out": gone} if gone else {}),
            **({"why": why} if why else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RefilledAct:
    """Lost rows were restored, or are gone: `erased` on purpose, or `lost`."""

    commit_id: str
    files: int
    rows: int
    digest: str | None
    refilled: tuple[OffsetRange, ...] = ()
    erased: tuple[OffsetRange, ...] = ()
    lost: tuple[OffsetRange, ...] = ()
    snapshot_id: int | None = None

    kind: ClassVar[str] = "refill"
    removed: ClassVar[str | None] = NO_RECORDS

    @property
    def id(self) -> str:
        return f"refill-{self.commit_id}"

    @property
    def added(self) -> str | None:
        """Restored rows were never removed from the trail's count."""
        return NO_RECORDS

    def to_json(self) -> dict[str, Any]:
        spans = {"offsets": self.refilled, "accepted_removed": self.erased, "accepted_lost": self.lost}
        return {
            "commit_id": self.commit_id,
            "snapshot_id": _text(self.snapshot_id),
            "files": self.files,
            "rows": self.rows,
            "digest": self.digest,
            **{name: _by_partition(offsets) for name, offsets in spans.items() if offsets},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionedAct:
    """`before` and `after` are transforms and field ids."""

    commit_id: str
    before: str
    after: str

    kind: ClassVar[str] = "repartition"
    added: ClassVar[str | None] = NO_RECORDS
    removed: ClassVar[str | None] = NO_RECORDS

    @property
    def id(self) -> str:
        return f"repartition-{self.commit_id}"

    def to_json(self) -> dict[str, Any]:
        return {"commit_id": self.commit_id, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredHold:
    """`hold = true` appeared (odd `change`), or disappeared."""

    change: int

    added: ClassVar[str | None] = NO_RECORDS
    removed: ClassVar[str | None] = NO_RECORDS

    @property
    def is_held(self) -> bool:
        return self.change % 2 == 1

    @property
    def kind(self) -> str:
        return "hold" if self.is_held else "release"

    @property
    def id(self) -> str:
        return f"{self.kind}-{CONFIG_HOLD}-{self.change}"

    def to_json(self) -> dict[str, Any]:
        return {
            "hold": CONFIG_HOLD,
            "spans": [[WHOLE_TOPIC.partition, WHOLE_TOPIC.start_offset, WHOLE_TOPIC.end_offset]],
            "asked": "",
            "reason": "hold = true" if self.is_held else "hold = true is gone",
            "change": self.change,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Any other act. `details` are JSON values without fractions."""

    kind: NotedKind
    id: str
    details: Mapping[str, Any]

    added: ClassVar[str | None] = NO_RECORDS
    removed: ClassVar[str | None] = NO_RECORDS

    def to_json(self) -> dict[str, Any]:
        return dict(self.details)


Act: TypeAlias = Began | Evolved | Appended | Rewrote | RefilledAct | RepartitionedAct | ConfiguredHold | Noted


def _by_partition(ranges: Iterable[OffsetRange]) -> dict[str, list[list[int]]]:
    by_partition: dict[str, list[list[int]]] = {}
    for offsets in sorted(ranges):
        edges = by_partition.setdefault(str(offsets.partition), [])
        if edges and edges[-1][1] >= offsets.first:
            edges[-1][1] = max(offsets.end, edges[-1][1])
        else:
            edges.append([offsets.first, offsets.end])
    return by_partition


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
