"""Topics, tables and small Parquet files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    match_metrics_mode,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, StringType

from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.properties import metrics_properties
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import DataFileInfo, TopicRow, TranslatedRange, new_id
from catalog.partitioning import PartitionTuple
from schema_mapping.field_ids import Assignment, LedgerState, assign
from schema_mapping.protobuf.descriptors import SourceSchema
from schema_mapping.row import PartitionSource
from tests.support.servers.stack import unique

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = datetime(2024, 5, 17, tzinfo=UTC)


def new_topic() -> TopicRow:
    name = unique("t")
    return TopicRow(id=1, cluster_id="cluster", topic=name, topic_id=uuid4(), table=f"kafka.{name}")


def message(**numbers: int) -> SourceSchema:
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    made = file.message_type.add(name="Order")
    for name, number in numbers.items():
        made.field.add(
            name=name,
            number=number,
            type=FieldDescriptorProto.TYPE_INT64,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )
    return SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="shop.Order")


def assigned(
    *fields: str, state: LedgerState | None = None, partition_source: PartitionSource = "nested"
) -> Assignment:
    value = message(**{name: number for number, name in enumerate(fields, 1)}) if fields else None
    return assign(state or LedgerState(), value=value, partition_source=partition_source)


def made(catalog: TableCatalog, topic: TopicRow, assignment: Assignment, partition_by: Any = "day") -> ArchiveTable:
    source = assignment.row.partition_source
    return catalog.ensure(topic, SchemaChange.of(assignment), partition_by=partition_by, partition_source=source)


def bare(topic: TopicRow, partition: int, start: int, end: int) -> TranslatedRange:
    return TranslatedRange(
        id=new_id(),
        topic=topic.topic,
        partition=partition,
        start_offset=start,
        end_offset=end,
        schema_version=1,
        leader_epoch=2,
        files=(),
        created_ms=0,
    )


def written(
    table: ArchiveTable, assignment: Assignment, partition: int, start: int, end: int, *, time: datetime = DAY
) -> TranslatedRange:
    rows = pa.Table.from_pylist(
        [_row(assignment, partition, offset, time) for offset in range(start, end)],
        schema=assignment.row.arrow_schema,
    )
    range_ = bare(table.topic, partition, start, end)
    path = f"{table.location}/data/{range_.id}.parquet"
    with table.io.new_output(path).create() as output, pq.ParquetWriter(output, rows.schema) as writer:
        writer.write_table(rows)
    with table.io.new_input(path).open() as stream:
        info = _measure(table, assignment.iceberg_schema, path, pq.read_metadata(stream), time)
    return replace(range_, files=(info,), schema_version=assignment.version)


def _row(assignment: Assignment, partition: int, offset: int, time: datetime) -> dict[str, Any]:
    value_type = assignment.row.arrow_schema.field("val").type
    value = {field.name: offset for field in value_type if pa.types.is_integer(field.type)}
    return {
        "key": {"__raw__": b"key %d" % offset},
        "val": value or {"__raw__": b"value %d" % offset},
        "headers": [],
        "ingest_timestamp": time,
        "kafka": {
            "partition": partition,
            "offset": offset,
            "event_timestamp": time,
            "ingest_timestamp": time,
            "batch_start": offset,
        },
    }


def _measure(table: ArchiveTable, schema: Schema, path: str, footer: pq.FileMetaData, time: datetime) -> DataFileInfo:
    properties = metrics_properties(schema, table.properties)
    plan = compute_statistics_plan(schema, properties)
    for field_id, item in plan.items():
        # pyiceberg measures no nested column; the properties request bounds all the same.
        mode = match_metrics_mode(properties.get(f"write.metadata.metrics.column.{item.column_name}", "none"))
        text = isinstance(item.iceberg_type, StringType | BinaryType)
        whole = mode.type == MetricModeTypes.TRUNCATE and not text
        plan[field_id] = replace(item, mode=MetricsMode(MetricModeTypes.FULL) if whole else mode)
    statistics = data_file_statistics_from_parquet_metadata(footer, plan, parquet_path_to_id_mapping(schema))
    measured = statistics.to_serialized_dict()
    since: timedelta = time - EPOCH
    units = {
        "hour": since // timedelta(hours=1),
        "day": since.days,
        "year": time.year - 1970,
        "month": (time.year - 1970) * 12 + time.month - 1,
    }
    return DataFileInfo(
        path=path,
        size_bytes=len(table.io.new_input(path)),
        rows=measured["record_count"],
        partition=PartitionTuple.of_time(units[table.partitioning.columns[0].transform]),
        column_sizes=measured["column_sizes"],
        value_counts=measured["value_counts"],
        null_value_counts=measured["null_value_counts"],
        nan_value_counts=measured["nan_value_counts"],
        lower_bounds=measured["lower_bounds"],
        upper_bounds=measured["upper_bounds"],
        split_offsets=tuple(measured["split_offsets"]),
    )
