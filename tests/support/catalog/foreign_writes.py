"""Changes by other writers, without footers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.update import AssertTableUUID, SetSnapshotRefUpdate, UpgradeFormatVersionUpdate
from pyiceberg.typedef import Record

from archiver.config import load_config
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.metrics import column_metrics, metrics_modes
from tests.support.archive.partitioned import partition_of
from tests.support.servers.stack import Stack


def table_of(stack: Stack, config: Path, topic: str) -> Any:
    return stack.catalog().load_table(load_config(config).topic(topic).table)


def set_main(stack: Stack, config: Path, topic: str, snapshot_id: int) -> None:
    table = table_of(stack, config, topic)
    update = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id)
    stack.catalog().commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))


def delete_rows(stack: Stack, config: Path, topic: str, partition: int, offsets: Iterable[int]) -> None:
    gone = pa.array(list(offsets), pa.int64())

    def kept(rows: pa.Table) -> pa.Table:
        local = pc.and_(
            pc.equal(pc.struct_field(rows["kafka"], "partition"), partition),
            pc.is_in(pc.struct_field(rows["kafka"], "offset"), value_set=gone),
        )
        return rows.filter(pc.invert(local))

    table = table_of(stack, config, topic)
    pairs = [(file, rows, kept(rows)) for file, rows in read(table)]
    touched = [(file, left) for file, rows, left in pairs if left.num_rows < rows.num_rows]
    swap(table, [file for file, _ in touched], [left for _, left in touched if left.num_rows])


def remove_file(stack: Stack, config: Path, topic: str, file: DataFile) -> None:
    swap(table_of(stack, config, topic), [file], [])


def change_values(stack: Stack, config: Path, topic: str, partition: int, offset: int) -> None:
    def changed(rows: pa.Table) -> pa.Table:
        pylist = rows.to_pylist()
        for row in pylist:
            if (row["kafka"]["partition"], row["kafka"]["offset"]) == (partition, offset):
                row["val"]["__raw__"] = b"changed"
        return pa.Table.from_pylist(pylist, rows.schema)

    table = table_of(stack, config, topic)
    pairs = [(file, rows, changed(rows)) for file, rows in read(table)]
    touched = [(file, fresh) for file, rows, fresh in pairs if not fresh.equals(rows)]
    swap(table, [file for file, _ in touched], [fresh for _, fresh in touched])


def upgrade(stack: Stack, config: Path, topic: str) -> None:
    """As `SET TBLPROPERTIES ('format-version' = '3')`."""
    table = table_of(stack, config, topic)
    update = UpgradeFormatVersionUpdate.model_validate({"format-version": 3})
    stack.catalog().commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))


def compact(stack: Stack, config: Path, topic: str) -> None:
    table = table_of(stack, config, topic)
    pairs = read(table)
    swap(table, [file for file, _ in pairs], [pa.concat_tables(rows for _, rows in pairs)])


def rewrite(stack: Stack, config: Path, topic: str) -> None:
    table = table_of(stack, config, topic)
    pairs = read(table)
    rows = pa.concat_tables(part for _, part in pairs)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows.to_pylist()):
        groups.setdefault(partition_of(table.schema(), table.spec(), row), []).append(number)
    old = [file for file, _ in pairs]
    made = [
        _written(table, rows.take(items), old[0], Record(*values), table.spec().spec_id)
        for values, items in groups.items()
    ]
    _replace(table, old, made)


def read(table: Any) -> list[tuple[DataFile, pa.Table]]:
    entries = [
        entry
        for manifest in table.current_snapshot().manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.data_file.content == DataFileContent.DATA
    ]
    result = []
    for entry in entries:
        with table.io.new_input(entry.data_file.file_path).open() as stream:
            result.append((entry.data_file, pq.read_table(stream).replace_schema_metadata(None)))
    return result


def swap(table: Any, old: list[DataFile], fresh: list[pa.Table]) -> None:
    _replace(table, old, [_written(table, rows, old[0], old[0].partition, old[0].spec_id) for rows in fresh])


def replace_entries(table: Any, change: Callable[[DataFile], DataFile]) -> list[DataFile]:
    old = [file for file, _ in read(table)]
    made = [change(deepcopy(file)) for file in old]
    _replace(table, old, made)
    return made


def _replace(table: Any, old: list[DataFile], made: list[DataFile]) -> None:
    with table.transaction() as transaction:
        producer = transaction.update_snapshot().overwrite()
        for value in old:
            producer.delete_data_file(value)
        for value in made:
            producer.append_data_file(value)
        producer.commit()


def _written(table: Any, rows: pa.Table, like: DataFile, partition: Record, spec_id: int) -> DataFile:
    path = f"{like.file_path.rpartition('/')[0]}/foreign-{uuid4()}.parquet"
    with table.io.new_output(path).create() as stream, pq.ParquetWriter(stream, rows.schema) as writer:
        writer.write_table(rows)
    with table.io.new_input(path).open() as stream:
        footer = pq.read_metadata(stream)
    leaves = leaves_of(rows.schema)
    metrics = column_metrics(footer, leaves, metrics_modes(leaves, table.properties))
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=rows.num_rows,
        file_size_in_bytes=len(table.io.new_input(path)),
        value_counts=dict(metrics.value_counts),
        null_value_counts=dict(metrics.null_value_counts),
        lower_bounds=dict(metrics.lower_bounds),
        upper_bounds=dict(metrics.upper_bounds),
    )
    file.spec_id = spec_id
    return file


def tag(stack: Stack, config: Path, topic: str, name: str, snapshot_id: int | None = None) -> None:
    table = table_of(stack, config, topic)
    update = SetSnapshotRefUpdate(
        ref_name=name, type="tag", snapshot_id=snapshot_id or table.metadata.current_snapshot_id
    )
    stack.catalog().commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))
