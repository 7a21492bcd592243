"""A topic's store, registry and table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archiver.intake.batches import LoggedRecords
from archiver.intake.state import IntakeState, covered_state
from catalog.model import DataFileInfo, PartitionOffset, TranslatedRange, new_id
from catalog.partitioning import PartitionTuple
from catalog.ranges.fence import fence


@dataclass
class MemoryArchive:
    """`step` is called before and after each change."""

    step: Callable[[str], None] = lambda _: None
    objects: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    staged: dict[str, TranslatedRange] = field(default_factory=dict)
    table: list[TranslatedRange] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    states: list[Mapping[str, Any]] = field(default_factory=list)

    def begin(self) -> Mapping[int, int]:
        return self.commit()

    def write(self, records: Iterable[LoggedRecords]) -> Sequence[TranslatedRange]:
        written = []
        for partition, group, _ in records:
            path = new_id()
            content = group.content
            rows = zip(content.column("offset").to_pylist(), content.column("value").to_pylist(), strict=True)
            self.step("upload")
            self.objects[path] = list(rows)
            self.step("uploaded")
            info = DataFileInfo(path=path, size_bytes=1, rows=len(group), partition=PartitionTuple.of_time(0))
            written.append(
                TranslatedRange(
                    id=path,
                    topic="t",
                    partition=partition,
                    start_offset=group.start_offset,
                    end_offset=group.end_offset,
                    schema_version=1,
                    leader_epoch=-1,
                    files=(info,),
                    created_ms=0,
                )
            )
        return written

    def keep(self, state: IntakeState, ends: Mapping[int, int]) -> None:
        self.step("keep")
        self.states = [covered_state(self.states, ends), state.to_json(answers=False)]
        self.step("kept")

    def accepted_ends(self) -> dict[int, int]:
        ends = dict(self.ends)
        for range_ in self.staged.values():
            ends[range_.partition] = max(ends.get(range_.partition, 0), range_.end_offset)
        return ends

    def stage(self, ranges: Sequence[TranslatedRange]) -> None:
        self.step("stage")
        ends = {
            range_.partition: range_.end_offset
            for range_ in sorted(self.staged.values(), key=lambda range_: range_.end_offset)
        }
        reached = {
            range_.partition: PartitionOffset(
                next_offset=ends.get(range_.partition, self.ends.get(range_.partition, 0))
            )
            for range_ in ranges
        }
        self.staged |= {range_.id: range_ for range_ in fence(ranges, reached).accepted}
        self.step("staged")

    def commit(self) -> Mapping[int, int]:
        self.step("commit")
        for range_ in sorted(self.staged.values(), key=lambda entry: entry.start_offset):
            assert self.ends.get(range_.partition, 0) == range_.start_offset
            self.ends[range_.partition] = range_.end_offset
            self.table.append(range_)
        self.staged = {}
        self.step("committed")
        return dict(self.ends)

    def values(self, partition: int) -> list[bytes]:
        ranges = sorted(
            (range_ for range_ in self.table if range_.partition == partition), key=lambda range_: range_.start_offset
        )
        rows = [row for range_ in ranges for file in range_.files for row in self.objects[file.path]]
        assert [offset for offset, _ in rows] == list(range(len(rows)))
        return [value for _, value in rows]
