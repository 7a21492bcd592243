"""A table for compactions."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.table.update import update_table_metadata

from archiver.archive.deletes import DeleteFiles
from archiver.archive.table_files import ManifestReader
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.choice import FileGroup, SourceFile, SourceRange
from archiver.upkeep.compact.target import CompactTarget, NewPlaces
from archiver.upkeep.compact.task import CompactTask, GroupResult, compact_group
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.repartition import repartition_updates
from catalog.iceberg.rewrite_commit import prepare_rewrite
from catalog.model import DataFileInfo, new_id
from catalog.partitioning import terms_of
from catalog.ranges.regrouping import regrouped
from catalog.ranges.rewrite import Rewrite
from catalog.ranges.stored_ranges import StoredFile, StoredRange
from tests.support.archive.archived_rows import KnownMapping, replayed, rows_of
from tests.support.archive.lake import TOPIC, Lake


class CompactedTable:
    def __init__(self, folder: Path, archive: Any) -> None:
        self.lake = Lake(folder / "lake", archive.rows)
        self.archive = archive
        self.ranges: list[StoredRange] = []

    @property
    def table(self) -> ArchiveTable:
        return ArchiveTable(topic=TOPIC, iceberg=self.lake.load(TOPIC.topic))

    @property
    def spec_id(self) -> int:
        return self.lake.metadata.default_spec_id

    def records(self, partition: int = 0) -> list[dict[str, Any]]:
        return replayed(self.lake.archive(registry=lambda *_: KnownMapping(self.archive.rows)), partition)

    def add(self, start: int, end: int, *, partition: int = 0, step: int = 1, expected: int = 0) -> str:
        rows = rows_of(self.archive, range(start, end, step), partition=partition)
        path = self.lake.add(self.archive.rows, self.archive.batch(rows), start, end, partition=partition)
        assert path is not None
        info = DataFileInfo(path=path, size_bytes=1, rows=len(rows))
        file = StoredFile(
            id=path, file=info, rows=len(rows), digest=None, expected=len(rows) + expected, schema_version=1
        )
        self.ranges.append(
            StoredRange(
                topic="orders",
                partition=partition,
                start_offset=start,
                end_offset=end,
                leader_epoch=0,
                created_ms=0,
                files=(file,),
            )
        )
        return path

    def repartition(self, *terms: str) -> None:
        table = self.table
        expected = partitioning_for(terms_of(terms), table.schema, table.partition_source)
        _, updates = repartition_updates(table, expected, new_id())
        self.lake.metadata = update_table_metadata(self.lake.metadata, updates, enforce_validation=True)

    def sources(self) -> list[SourceFile]:
        files = ManifestReader().files(self.lake.load(TOPIC.topic))
        deletes = DeleteFiles(ObjectStore(), FORMATS)
        return [
            SourceFile(file=file, ranges=self._held(file.path), has_deletes=len(deletes.read(file).positions) > 0)
            for file in files
        ]

    def _held(self, path: str) -> tuple[SourceRange, ...]:
        return tuple(
            SourceRange(
                partition=file.partition,
                start_offset=file.start_offset,
                end_offset=file.end_offset,
                is_whole=len(file.files) == 1 and file.expected == file.rows,
            )
            for file in self.ranges
            if path in file.paths
        )

    def merged(
        self,
        group: FileGroup,
        *,
        target_bytes: int = 1 << 20,
        held_bytes: int = 1 << 20,
        pending_bytes: int = 1 << 20,
        room: int = 1 << 30,
    ) -> GroupResult:
        table = self.table
        target = CompactTarget(
            files=RewriteTarget(
                topic="orders",
                mappings={1: self.archive.rows.text},
                table_properties=self.lake.metadata.properties,
                bloom_filters={},
                objects=ObjectStore(),
                formats=FORMATS,
                spool=self.lake.folder.parent / "spool",
                pending_bytes=pending_bytes,
            ),
            target_bytes=target_bytes,
            held_bytes=held_bytes,
            places=NewPlaces(
                spec_id=self.spec_id,
                partitioning=table.partitioning,
                data_location=table.data_location,
                room=room,
            ),
        )
        task: CompactTask = pickle.loads(pickle.dumps(CompactTask(target=target, group=group)))  # as Spark sends it
        return compact_group(task)

    def put(self, *results: GroupResult) -> None:
        groups = tuple(result.rewritten for result in results)
        rewrite = Rewrite(commit_id=new_id(), reason="compact", schema_version=1, groups=groups)
        for group in groups:
            made = regrouped(rewrite, group, self.ranges, is_done=False)
            if made:
                self.ranges = [*self._without(group.known_paths), *made]
        attempt = prepare_rewrite(self.table, rewrite=rewrite, change=None)
        self.lake.metadata = update_table_metadata(self.lake.metadata, attempt.updates, enforce_validation=True)

    def _without(self, paths: Sequence[str]) -> Iterable[StoredRange]:
        return (item for item in self.ranges if not set(item.paths) & set(paths))
