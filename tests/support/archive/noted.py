"""A registry in memory for checks of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.model import PartitionOffset
from catalog.ranges.holes import Checked, ExpectedRange
from schema_mapping.row import RowMapping


@dataclass
class Noted:
    ranges: list[ExpectedRange] = field(default_factory=list)
    mapping: RowMapping | None = None
    last: dict[str, Any] | None = None
    is_forgotten: bool = False
    notes: int = 0
    newest: str | None = None
    proven: Mapping[int, int] = field(default_factory=dict)

    @property
    def files(self) -> Any:
        return self

    @property
    def rows(self) -> Any:
        return self

    @property
    def ledger(self) -> Any:
        return self

    @property
    def retention(self) -> Any:
        return self

    def proven_first_offsets(self, topic: Any, claimed: Mapping[int, int]) -> Mapping[int, int]:
        return {partition: min(offset, self.proven.get(partition, 0)) for partition, offset in claimed.items()}

    def row_mapping(self, topic: Any, version: int) -> RowMapping | None:
        return self.mapping

    def committed_ends(self, topic: Any) -> Mapping[int, PartitionOffset]:
        ordered = sorted(self.ranges, key=lambda range_: range_.end_offset)
        return {entry.partition: PartitionOffset(next_offset=entry.end_offset) for entry in ordered}

    def newest_commit(self, topic: Any) -> str | None:
        return self.newest

    def expected_ranges(self, topic: Any) -> tuple[ExpectedRange, ...]:
        return tuple(sorted(self.ranges, key=lambda range_: (range_.partition, range_.start_offset)))

    def checked(self, topic: Any) -> Checked | None:
        return None if self.is_forgotten else self.last_checked(topic)

    def last_checked(self, topic: Any) -> Checked | None:
        return None if self.last is None else Checked.from_json(self.last)

    def note_checked(self, topic: Any, found: Checked) -> None:
        self.last, self.is_forgotten = found.to_json(), False
        self.notes += 1

    def replace_checked(self, topic: Any, old: Checked, new: Checked) -> bool:
        if self.is_forgotten or self.last != old.to_json():
            return False
        self.note_checked(topic, new)
        return True
