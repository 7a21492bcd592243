"""Staged ranges and a catalog, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pyiceberg.table.update import SetPropertiesUpdate

from archiver.commit.commit_staged import CommitReport, StagedTopic, commit_pending
from archiver.storage.journal import TableJournal
from catalog.errors import TableMissing
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, CommitOutcome, commit
from catalog.iceberg.offsets import decode_offsets, encode_offsets
from catalog.iceberg.settle import Settled, settle
from catalog.model import PartitionOffset, TranslatedRange
from tests.support.catalog.memory import TOPIC, MemoryCatalog, change, span

Send = Callable[[Attempt], None]


@dataclass
class StagedRanges:
    waiting: dict[str, TranslatedRange] = field(default_factory=dict)
    landed: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    ends: dict[int, int] = field(default_factory=dict)

    def stage(self, folder: Path, partition: int, offsets: int) -> TranslatedRange:
        start = self.ends.get(partition, 0)
        range_ = span(partition, start, start + offsets)
        path = folder / f"{range_.id}.parquet"
        path.write_bytes(b"x" * 10)
        assert range_.file is not None
        range_ = replace(range_, files=(replace(range_.file, path=path.as_uri(), size_bytes=10),))
        self.waiting[range_.id] = range_
        self.ends[partition] = range_.end_offset
        return range_

    def pending(self, _: Any) -> tuple[TranslatedRange, ...]:
        return tuple(sorted(self.waiting.values(), key=lambda range_: (range_.partition, range_.start_offset)))

    def record(self, _: Any, settled: Settled) -> None:
        self.settle({item.range.id for item in settled.landed}, self.landed)
        self.settle({item.range.id for item in settled.refused}, self.refused)

    def confirm(self, _: Any, range_ids: Sequence[str], *, commit_id: str) -> None:
        self.settle(set(range_ids), self.landed)

    def settle(self, range_ids: set[str], fate: set[str]) -> None:
        fate |= range_ids
        for value in range_ids:
            self.waiting.pop(value, None)


class NoneMissing:
    def load(self, _: Any, **__: Any) -> tuple[TranslatedRange, ...]:
        return ()


@dataclass
class CatalogOfOne:
    """`send` may lose requests, answers and time."""

    memory: MemoryCatalog
    send: Send

    def load(self, _: Any) -> ArchiveTable:
        return self.memory.load()

    def reload(self, known: ArchiveTable) -> ArchiveTable:
        table = self.memory.load()
        if table.uuid != known.uuid:
            raise TableMissing("another table")
        return table

    def settle(
        self, table: ArchiveTable, ranges: Sequence[TranslatedRange], *, after_rollback: bool = False
    ) -> Settled:
        return settle(table, ranges, after_rollback=after_rollback)

    def commit(
        self, table: ArchiveTable, ranges: Sequence[TranslatedRange], *, is_fresh: bool = False, **options: Any
    ) -> CommitOutcome:
        backoff = Backoff(attempts=2, pause=lambda _: None)
        fresh = [table] if is_fresh else []

        def load() -> ArchiveTable:
            return fresh.pop() if fresh else self.memory.load()

        return commit(load=load, send=self.send, ranges=ranges, backoff=backoff, **options)


def commit_staged(
    memory: MemoryCatalog, ranges: StagedRanges, send: Send | None = None, *, table: ArchiveTable | None = None
) -> CommitReport:
    opened = StagedTopic(topic=TOPIC, table=table or memory.load(), change=change(), journal=TableJournal())
    catalog = CatalogOfOne(memory, send or memory.apply)
    registry = SimpleNamespace(files=ranges, missing=NoneMissing())
    return commit_pending(opened, cast("Any", registry), cast("Any", catalog), lambda _: None)


def set_offset(memory: MemoryCatalog, partition: int, offset: int) -> None:
    offsets = decode_offsets(memory.metadata.properties[keys.OFFSETS])
    text = encode_offsets(offsets | {partition: PartitionOffset(next_offset=offset)})
    memory.change(SetPropertiesUpdate(updates={keys.OFFSETS: text}))
