"""A table in a folder, changed by the archiver and as by other engines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from pyiceberg.typedef import Record

from archiver.archive.topic_archive import RegistrySources, TopicArchive
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.metrics import column_metrics, metrics_modes
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.storage.value_sets import SetLimits
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.creation import NewTable
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.properties import first_properties
from catalog.model import DataFileInfo, TopicRow, TranslatedRange, new_id
from catalog.partitioning import PartitionTerm, PartitionTuple
from catalog.record_metadata import MetadataEntry
from catalog.value_terms import Lookup, ValueTerms
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.row import RowMapping, table_schema
from tests.support.archive.puffin_file import vector_entry, write_vectors
from tests.support.catalog.delete_manifests import add_delete_files
from tests.support.catalog.table_changes import created, updates_of

TOPIC = TopicRow(id=1, cluster_id="cluster", topic="orders", topic_id=None, table="kafka.orders")
DAY = 19_675


class Lake:
    """`bloom_filters` are by field id, `values` as in the registry. `entries` are metadata of records."""

    def __init__(self, folder: Path, rows: RowMapping) -> None:
        self.folder = folder
        self.io = PyArrowFileIO()
        self._numbers = itertools.count()
        self.bloom_filters: dict[int, float] = {}
        self.values: dict[str, ValueTerms] = {}
        self.entries: list[MetadataEntry] = []
        self.set_limits = SetLimits()
        schema = schema_of(rows)
        staged = new_table_metadata(
            schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, folder.as_uri(), {}, uuid4()
        )
        properties = first_properties(TOPIC, schema, ledger_version=1)
        new = NewTable(
            schema=schema,
            partitioning=partitioning_for((PartitionTerm("day", None),), schema, "nested"),
            partition_source="nested",
            properties=properties,
        )
        updates = new.creating(staged)
        self.metadata = created(updates)

    def load(self, topic: str) -> Table:
        assert topic == TOPIC.topic
        return Table(("kafka", "orders"), self.metadata.model_copy(deep=True), "", self.io, catalog=None)  # type: ignore[arg-type]

    def topics(self, known: Iterable[str] = ()) -> tuple[str, ...]:
        return (TOPIC.topic,)

    def names(self) -> frozenset[str]:
        return frozenset({TOPIC.table})

    def table_of(self, topic: str) -> str:
        return f"kafka.{topic}"

    def archive(self, registry: Any = None, ledger: Any = None, **options: Any) -> TopicArchive:
        sources = RegistrySources(mappings=registry, ledger=ledger, values=self.absent, metadata=self._entries)
        return TopicArchive(TOPIC.topic, self, registry=sources, **options)

    def _entries(self, _cluster: str, _uuid: UUID, names: Collection[str]) -> list[MetadataEntry]:
        return [entry for entry in self.entries if entry.name in names]

    def absent(
        self, _cluster_id: str, _table: UUID, paths: Sequence[str], lookups: Sequence[Lookup]
    ) -> dict[str, list[bool]]:
        return {
            path: [lookup.field_id in values.columns and lookup.term not in values.terms for lookup in lookups]
            for path, values in self.values.items()
            if path in paths
        }

    def add(
        self,
        rows: RowMapping,
        batch: pa.RecordBatch | None,
        start: int,
        end: int,
        *,
        partition: int = 0,
        digest: str | None = None,
        largest: int | None = None,
    ) -> str | None:
        """`batch` is None if no record survived."""
        file = None if batch is None else self._written(rows, batch, (partition, start, end), digest, largest)
        range_ = TranslatedRange(
            id=new_id(),
            topic=TOPIC.topic,
            partition=partition,
            start_offset=start,
            end_offset=end,
            schema_version=rows.schema_version,
            leader_epoch=0,
            files=() if file is None else (file,),
            created_ms=0,
        )
        attempt = prepare(
            ArchiveTable(topic=TOPIC, iceberg=self.load(TOPIC.topic)), [range_], change=None, commit_id=range_.id
        )
        self.metadata = update_table_metadata(self.metadata, attempt.updates, enforce_validation=True)
        return None if file is None else file.path

    def _written(
        self,
        rows: RowMapping,
        batch: pa.RecordBatch,
        place: tuple[int, int, int],
        digest: str | None,
        largest: int | None,
    ) -> DataFileInfo:
        partition, start, end = place
        local = self.path("ours")
        origin = SegmentOrigin(
            cluster_id="cluster", topic="orders", topic_id="", partition=partition, start_offset=start, end_offset=end
        )
        with closing(SpoolFile.create(local)) as file:
            layout = SegmentLayout.of_mapping(rows, self.metadata.properties, self.bloom_filters)
            writer = ParquetFormat().start(file, replace(layout, set_limits=self.set_limits))
            writer.write(batch)
            info = writer.close(
                origin=origin,
                path=local.as_uri(),
                partition=PartitionTuple.of_time(DAY),
                digest=digest,
                largest_record=largest,
            )
        if info.values is not None:
            self.values[info.path] = info.values
        return info

    def path(self, name: str) -> Path:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        return self.folder / "data" / f"{name}-{next(self._numbers)}.parquet"

    def evolve(self, schema: Schema) -> None:
        fresh = schema.model_copy(update={"schema_id": 1 + max(schema.schema_id for schema in self.metadata.schemas)})
        updates = (AddSchemaUpdate(schema=fresh), SetCurrentSchemaUpdate(schema_id=-1))
        self.metadata = update_table_metadata(self.metadata, updates, enforce_validation=True)

    def set(self, **properties: str) -> None:
        updates = (SetPropertiesUpdate(updates=properties),)
        self.metadata = update_table_metadata(self.metadata, updates, enforce_validation=True)

    def set_main(self, snapshot_id: int) -> None:
        update = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id)
        self.metadata = update_table_metadata(self.metadata, (update,), enforce_validation=True)

    def files(self) -> list[DataFile]:
        snapshot = self.load(TOPIC.topic).current_snapshot()
        manifests = snapshot.manifests(self.io) if snapshot else []
        entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(self.io)]
        return [entry.data_file for entry in entries if entry.data_file.content == DataFileContent.DATA]

    def rewrite(
        self,
        change: Callable[[pa.Table], pa.Table | Iterable[pa.Table]] = lambda table: table,
        *,
        with_metrics: bool = True,
        drop: bool = False,
        **options: Any,
    ) -> list[str]:
        """Replace all files by rows without footers, as a foreign engine."""
        everything = pa.concat_tables([pq.read_table(file.file_path.removeprefix("file://")) for file in self.files()])
        changed = change(everything.replace_schema_metadata(None))
        tables = [changed] if isinstance(changed, pa.Table) else list(changed)
        return self.replace(tables, with_metrics=with_metrics, drop=drop, **options)

    def replace(
        self,
        tables: Iterable[pa.Table],
        *,
        with_metrics: bool = True,
        drop: bool = False,
        operation: Operation = Operation.OVERWRITE,
        **options: Any,
    ) -> list[str]:
        old = self.files()
        fresh = [self._foreign(table, with_metrics=with_metrics, **options) for table in tables]

        def swap(producer: Any) -> None:
            for file in old:
                producer.delete_data_file(file)
            for file in fresh:
                producer.append_data_file(file)

        self._commit(lambda snapshot: snapshot.overwrite(), swap)
        self._rename_operation(operation)
        if drop:
            for file in old:
                Path(file.file_path.removeprefix("file://")).unlink()
        return [file.file_path for file in fresh]

    def _rename_operation(self, operation: Operation) -> None:
        self._set_summary(operation, {})

    def sign(self, **properties: str) -> None:
        summary = self.metadata.snapshots[-1].summary
        assert summary is not None
        self._set_summary(
            summary.operation, {f"archiver.{name.replace('_', '-')}": text for name, text in properties.items()}
        )

    def _set_summary(self, operation: Operation, properties: Mapping[str, str]) -> None:
        *earlier, newest = self.metadata.snapshots
        assert newest.summary is not None
        summary = Summary(operation, **{**newest.summary.additional_properties, **properties})
        named = newest.model_copy(update={"summary": summary})
        self.metadata = self.metadata.model_copy(update={"snapshots": [*earlier, named]})

    def retire(self, before: int) -> None:
        """Remove partition 0's files below this offset, as `expire` does."""
        field = self.metadata.schema().find_field("kafka.offset").field_id
        going = [file for file in self.files() if int.from_bytes(file.upper_bounds[field], "little") < before]

        def leave_out(producer: Any) -> None:
            for entry in going:
                producer.delete_data_file(entry)

        self._commit(lambda snapshot: snapshot.overwrite(), leave_out)
        self.set(**{"archiver.first-offsets": json.dumps({"0": before})})
        for entry in going:
            Path(entry.file_path.removeprefix("file://")).unlink()

    def insert(self, table: pa.Table) -> None:
        self.append(self._foreign(table, with_metrics=True))

    def append(self, file: DataFile) -> None:
        self._commit(lambda snapshot: snapshot.fast_append(), lambda producer: producer.append_data_file(file))

    def delete_positions(self, positions: Mapping[str, Iterable[int]], *, partition: int = DAY) -> None:
        rows = sorted((path, position) for path, many in positions.items() for position in many)
        table = pa.table(
            {
                "file_path": pa.array([path for path, _ in rows], pa.string()),
                "pos": pa.array([position for _, position in rows], pa.int64()),
            }
        )
        self._delete(table, DataFileContent.POSITION_DELETES, None, partition)

    def delete_equal(self, table: pa.Table, field_ids: list[int], *, partition: int = DAY) -> None:
        self._delete(table, DataFileContent.EQUALITY_DELETES, field_ids, partition)

    def _delete(self, table: pa.Table, content: DataFileContent, field_ids: list[int] | None, partition: int) -> None:
        path = self.path("deletes")
        pq.write_table(table, path)
        self._add_deletes(data_file(path, content, table.num_rows, partition, equality_ids=field_ids))

    def delete_by_vectors(self, positions: Mapping[str, Iterable[int]], **more: Any) -> Path:
        """`more` goes to the manifest entries."""
        path = self.folder / f"{uuid4()}.puffin"
        places = write_vectors(path, positions)
        self._add_deletes(*(vector_entry(path, vector, DAY, **more) for vector in places))
        return path

    def _add_deletes(self, *files: DataFile) -> None:
        self._commit(
            lambda snapshot: snapshot.fast_append(),
            lambda producer: add_delete_files(producer, self.load(TOPIC.topic), files),
        )

    def _foreign(self, table: pa.Table, *, with_metrics: bool, **options: Any) -> DataFile:
        path = self.path("foreign")
        pq.write_table(table, path, **options)
        footer = pq.read_metadata(path)
        leaves = leaves_of(table.schema)
        modes = metrics_modes(
            leaves, self.metadata.properties if with_metrics else {"write.metadata.metrics.default": "none"}
        )
        metrics = column_metrics(footer, leaves, modes)
        return data_file(
            path,
            DataFileContent.DATA,
            table.num_rows,
            DAY,
            value_counts=dict(metrics.value_counts),
            null_value_counts=dict(metrics.null_value_counts),
            lower_bounds=dict(metrics.lower_bounds),
            upper_bounds=dict(metrics.upper_bounds),
        )

    def _commit(self, make: Callable[[Any], Any], fill: Callable[[Any], None]) -> None:
        def change(transaction: Transaction) -> None:
            producer = make(transaction.update_snapshot())
            fill(producer)
            producer.commit()

        updates = updates_of(self.load(TOPIC.topic), change)
        self.metadata = update_table_metadata(self.metadata, updates, enforce_validation=True)


def data_file(path: Path, content: DataFileContent, rows: int, partition: int, **more: Any) -> DataFile:
    file = DataFile.from_args(
        content=content,
        file_path=path.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(partition),
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
        **more,
    )
    file.spec_id = 0
    return file


def schema_of(rows: RowMapping) -> Schema:
    return table_schema(
        arrow_field("key", rows.key.arrow_type, 1), arrow_field("val", rows.value.arrow_type, 2), rows.partition_source
    )


def claim_order(lake: Lake) -> None:
    """Writes an unsorted file that claims to be sorted, as earlier refills did."""

    def halves(table: pa.Table) -> pa.Table:
        middle = table.num_rows // 2
        return pa.concat_tables([table.slice(middle), table.slice(0, middle)])

    schema = pq.read_schema(lake.files()[0].file_path.removeprefix("file://"))
    by_name = {leaf.name: leaf.index for leaf in leaves_of(schema)}
    order = [pq.SortingColumn(by_name[name]) for name in ("kafka.partition", "kafka.offset")]
    lake.rewrite(halves, sorting_columns=order, row_group_size=1 << 20)
