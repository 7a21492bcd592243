"""Rewrites a topic's files with other boundaries, as compaction does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.deletes import Deletes
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.config import Config, load_config
from archiver.rewrite.in_place import put_in_place
from archiver.rewrite.table_work import TableWork
from archiver.storage.file_names import DataFileName
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import RowRange, SegmentLayout
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.rewrite_commit import Displaced, Rewritten
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import DataFileInfo, TopicRow, new_id
from catalog.partitioning import PartitionTuple
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.registry import Registry
from schema_mapping import names

Keep = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    config: Config
    topic: TopicRow
    registry: Registry
    catalog: TableCatalog

    @classmethod
    @contextmanager
    def of(cls, path: Path) -> Iterator[Workshop]:
        config = load_config(path)
        with Registry(config.registry.dsn) as registry, TableCatalog(config.catalog) as catalog:
            yield cls(config=config, topic=registry.topics.every()[0], registry=registry, catalog=catalog)

    @property
    def table(self) -> ArchiveTable:
        return self.catalog.require(self.topic)

    def files(self) -> list[TableFile]:
        return sorted(
            ManifestReader().files(self.table.iceberg), key=lambda file: file.offsets.low if file.offsets else 0
        )

    def written(
        self,
        sources: Sequence[str],
        start: int,
        end: int,
        *,
        keep: Keep | None = None,
        files: int = 1,
        range_id: str = "",
    ) -> DataFileInfo:
        table, form, file_id = self.table, ParquetFormat(), new_id()
        objects, expected = (
            ObjectStore.of_table(table.iceberg),
            RowRange(partition=0, start_offset=start, end_offset=end),
        )
        name = DataFileName(
            topic=self.topic.topic, ulid=file_id, extension=form.extension, partition=0, start_offset=start
        )
        path, digest = f"{sources[0].rpartition('/')[0]}/{name}", RecordDigest()
        with TaskSpool(self.config.archive.spool) as spool:
            local = spool.create(f"{file_id}.{form.extension}")
            with form.open(objects, sources[0]) as first:
                about = first.metadata
                version, origin = about.schema_version, about.origin
                assert version is not None
                assert origin is not None
                layout = SegmentLayout(
                    schema=first.schema,
                    mapping=about.mappings[version],
                    schema_version=version,
                    table_properties=table.properties,
                )
            writer = form.start(local, layout)
            for source in sources:
                with form.open(objects, source) as reader:
                    mappings = KnownMappings(self.topic.topic)
                    mappings.learn(reader.metadata)
                    assembler = Assembler(source, reader.schema, mappings)
                    file = OpenFile(reader, Deletes(np.empty(0, np.int64)), assembler)
                    for block in reader.blocks(expected):
                        for rows, kafka in file.rows(block, expected):
                            offsets = kafka.field(names.OFFSET).to_numpy()
                            mask = pa.array(np.ones(len(offsets), np.bool_) if keep is None else keep(offsets))
                            digest += RecordDigest.of_seen(assembler.records(rows, kafka).filter(mask))
                            if (chosen := rows.filter(mask)).num_rows:
                                writer.write(chosen)
            info = writer.close(
                origin=replace(origin, start_offset=start, end_offset=end, files=files, range_id=range_id),
                path=path,
                partition=self._partition(sources[0]),
                digest=digest.text,
            )
            objects.upload(local, path, expected=info.size_bytes)
        return info

    def merged(self, old: Sequence[TableFile], *borders: tuple[int, int]) -> RewriteGroup:
        paths = [file.path for file in old]
        return RewriteGroup(paths=tuple(paths), files=tuple(self._new(paths, *border) for border in borders))

    def put(self, *groups: RewriteGroup, reason: str = "compact") -> Rewritten | Displaced:
        table, manifests = self.table, ManifestReader()
        existing = {file.path: file for file in manifests.files(table.iceberg)}
        rewrite = Rewrite(commit_id=new_id(), reason=reason, schema_version=1, groups=groups)
        journal = Journal.of(self.config).of_table(table)
        work = TableWork(registry=self.registry, catalog=self.catalog, manifests=manifests, journal=journal)
        return put_in_place(work, table, rewrite, existing)

    def _new(self, paths: Sequence[str], start: int, end: int) -> NewFile:
        info = self.written(paths, start, end)
        span = RecordSpan(partition=0, start_offset=start, end_offset=end, rows=info.rows, digest=info.digest)
        return NewFile(file=info, spans=(span,))

    def _partition(self, path: str) -> PartitionTuple:
        existing = {file.path: file.time_partition for file in self.files()}
        waiting = {file.path: file.partition for item in self.registry.files.pending(self.topic) for file in item.files}
        return (existing | waiting)[path]


def retired(file: TableFile, start: int, end: int) -> RecordSpan:
    return RecordSpan(partition=0, start_offset=start, end_offset=end, retired=file.rows)
