"""Which rows a table must have, which are missing, and which are accepted as gone (docs/missing-records.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from catalog.ranges.spans import uncovered
from catalog.ranges.stored_ranges import StoredRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """A committed range of which the table must have `rows`.

    The written files had `file_rows` of its records, with this `digest`, and maybe more of other ranges. `gone` ones
    are gone on purpose or accepted.
    """

    id: str
    partition: int
    start_offset: int
    end_offset: int
    files: tuple[ExpectedFile, ...]
    rows: int
    file_rows: int
    digest: str | None
    gone: int = 0

    @property
    def is_intact(self) -> bool:
        """Whether the table must have every row of the files."""
        return self.rows == self.file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Missing rows of a committed range, between half-open offsets."""

    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRange:
    """A committed range with changed or duplicated `rows`."""

    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Holes and altered ranges in one snapshot; without both a table is as archived.

    `uncompared` spans (partition, start, end) may lie beyond the archived end, `uncompared_rows` don't. Nothing before
    `unseen_before` was visible. `sequence` is 0 if unknown.
    """

    snapshot_id: int | None
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared: tuple[tuple[int, int, int], ...] = ()
    uncompared_rows: int = 0
    unseen_before: int | None = None
    sequence: int = 0

    def without(self, spans: Iterable[tuple[int, int, int]]) -> Self:
        """With these spans (partition, start, end) as archived."""
        gone: dict[int, list[tuple[int, int]]] = {}
        for partition, start, end in spans:
            gone.setdefault(partition, []).append((start, end))
        return replace(
            self,
            altered=tuple(
                each
                for each in self.altered
                if uncovered([(each.start_offset, each.end_offset)], gone.get(each.partition, ()))
            ),
            uncompared=tuple(
                (partition, *left)
                for partition, start, end in self.uncompared
                for left in uncovered([(start, end)], gone.get(partition, ()))
            ),
        )

    def to_json(self) -> dict[str, Any]:
        found = {"snapshot_id": self.snapshot_id, "holes": [asdict(each) for each in self.holes]}
        more: dict[str, Any] = {
            "altered": [asdict(each) for each in self.altered],
            "uncompared": [list(each) for each in self.uncompared],
            "uncompared_rows": self.uncompared_rows,
            "unseen_before": self.unseen_before,
            "sequence": self.sequence,
        }
        return found | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            snapshot_id=value["snapshot_id"],
            holes=tuple(Hole(**each) for each in value["holes"]),
            altered=tuple(AlteredRange(**each) for each in value.get("altered", ())),
            uncompared=tuple((partition, start, end) for partition, start, end in value.get("uncompared", ())),
            uncompared_rows=value.get("uncompared_rows", 0),
            unseen_before=value.get("unseen_before"),
            sequence=value.get("sequence", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Rows of a range that stay gone: `erased` by other engines on purpose, or `lost`.

    Matched by partition, start and `paths`; old ones by `range_id`, which can change.
    """

    range_id: str
    left: int
    erased: int = 0
    lost: int = 0
    paths: tuple[str, ...] = ()
    partition: int | None = None
    start_offset: int | None = None

    def is_of(self, one: StoredRange) -> bool:
        place = (self.partition, self.start_offset, frozenset(self.paths))
        is_same = place == (one.partition, one.start_offset, frozenset(one.paths))
        return (
            is_same or (not self.paths and self.range_id == one.id)
        ) and one.expected == self.left + self.erased + self.lost

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"paths": list(self.paths)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "paths": tuple(value.get("paths", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRows:
    """Accepted missing rows by reason."""

    erased: int = 0
    lost: int = 0
    retired: int = 0
