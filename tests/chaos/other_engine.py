"""Another engine, by pyiceberg, pyarrow and DuckDB alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem
from pyiceberg.io.pyarrow import compute_statistics_plan, data_file_statistics_from_parquet_metadata, schema_to_pyarrow
from pyiceberg.io.pyarrow import parquet_path_to_id_mapping as ids_by_path
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.manifest import ManifestEntryStatus as Status
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from tests.chaos.polars_files import without_large_types
from tests.support.archive.partitioned import partition_of
from tests.support.catalog.delete_manifests import add_delete_files

Place: TypeAlias = tuple[int, int]
"""Kafka partition and offset."""
Bounds: TypeAlias = tuple[bytes, bytes]
Cut: TypeAlias = Callable[[pa.Table], Iterable[pa.Table]]
"""Deals the rows of one table partition out to files, each in the order that the file gets."""
Write: TypeAlias = Callable[[pa.Table], bytes]
"""Makes a data file of rows, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    data: DataFile
    rows: pa.Table
    alive: tuple[int, ...]

    @property
    def live(self) -> pa.Table:
        return self.rows.take(pa.array(self.alive, pa.int64()))

    @property
    def has_deletes(self) -> bool:
        return len(self.alive) < self.rows.num_rows


def places_of(rows: pa.Table) -> list[Place]:
    kafka = rows.column("kafka")
    return list(
        zip(pc.struct_field(kafka, "partition").to_pylist(), pc.struct_field(kafka, "offset").to_pylist(), strict=True)
    )


def written_by_arrow(rows: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(rows, target)
    return target.getvalue().to_pybytes()


class OtherEngine:
    """Knows nothing of the archiver, and keeps no footers."""

    def __init__(self, load: Callable[[], Table], *, bounds_nested: bool = True, write: Write | None = None) -> None:
        self._load = load
        self._write = write or written_by_arrow
        self._bounds_nested = bounds_nested
        """Whether manifests bound columns of structs, as Spark's do; pyiceberg's own don't."""
        self._reader = SnapshotReader()

    @property
    def table(self) -> Table:
        return self._load()

    def files(self) -> list[LiveFile]:
        return self._reader.live_files(self._load())

    def delete_copied(self, places: Iterable[Place], *, branch: str = "main") -> None:
        """DELETE, copy-on-write."""
        gone = frozenset(places)
        table = self._load()
        old = [file for file in self._reader.live_files(table, branch) if not gone.isdisjoint(places_of(file.live))]
        self._replace(table, old, [_without(file.live, gone) for file in old], branch=branch)

    def add_rows(self, places: Sequence[Place]) -> None:
        table = self._load()
        like = next(file.live for file in self._reader.live_files(table) if file.live.num_rows).slice(0, 1)
        row = like.to_pylist()[0]
        kafka = [row["kafka"] | {"partition": partition, "offset": offset} for partition, offset in places]
        rows = pa.Table.from_pylist([row | {"kafka": record} for record in kafka], like.schema)
        data = self._data_file(table, rows)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as producer:
            producer.append_data_file(data)

    def delete_positions(self, places: Iterable[Place], *, granular: bool = True) -> None:
        gone = frozenset(places)
        table = self._load()
        groups: dict[tuple[Any, ...], list[tuple[DataFile, int]]] = {}
        for file in self._reader.live_files(table):
            at = places_of(file.rows)
            hit = [(file.data, position) for position in file.alive if at[position] in gone]
            scope = file.data.file_path if granular else ""
            if hit:
                groups.setdefault((file.data.spec_id, scope, *_values(file.data.partition)), []).extend(hit)
        files = []
        for hits in groups.values():
            pairs = sorted((data.file_path, position) for data, position in hits)
            rows = pa.table(
                [pa.array([path for path, _ in pairs]), pa.array([at for _, at in pairs], pa.int64())],
                schema=_POSITION_DELETES,
            )
            files.append(self._delete_file(table, rows, DataFileContent.POSITION_DELETES, like=hits[0][0]))
        _add_deletes(table, files)

    def delete_equal(self, places: Iterable[Place]) -> None:
        """DELETE, merge-on-read, with equality deletes, as streaming writers do."""
        gone = frozenset(places)
        table = self._load()
        ids = [table.schema().find_field(f"kafka.{name}").field_id for name in ("partition", "offset")]
        groups: dict[tuple[Any, ...], tuple[DataFile, set[Place]]] = {}
        for file in self._reader.live_files(table):
            if hit := gone.intersection(places_of(file.live)):
                key = (file.data.spec_id, *_values(file.data.partition))
                groups.setdefault(key, (file.data, set()))[1].update(hit)
        files = []
        for like, hit in groups.values():
            rows = _equality_rows(table, sorted(hit))
            files.append(self._delete_file(table, rows, DataFileContent.EQUALITY_DELETES, like=like, equality_ids=ids))
        _add_deletes(table, files)

    def rewrite(self, cut: Cut | None = None, *, chosen: Callable[[LiveFile], bool] = lambda _: True) -> None:
        table = self._load()
        old = [file for file in self._reader.live_files(table) if chosen(file)]
        if old:
            rows = pa.concat_tables((file.live for file in old), promote_options="permissive")
            parts = [part for group in _by_partition(table, rows) for part in (cut(group) if cut else (group,))]
            self._replace(table, old, parts)

    def rename_column(self, path: tuple[str, ...], name: str) -> None:
        with self._load().update_schema() as update:
            update.rename_column(path, name)

    def added_files(self, snapshot: Snapshot) -> list[LiveFile]:
        added = {
            entry.data_file.file_path
            for manifest in snapshot.manifests(self._load().io)
            if manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in manifest.fetch_manifest_entry(self._load().io)
            if entry.status == Status.ADDED
        }
        files = self._reader.files_of(self._load(), snapshot)
        return [file for file in files if file.data.file_path in added]

    def cherry_pick(self, snapshot: Snapshot) -> None:
        """As `cherrypick_snapshot` does with appends."""
        files = self.added_files(snapshot)
        source = {"source-snapshot-id": str(snapshot.snapshot_id)}
        with (
            self._load().transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=source).fast_append() as producer,
        ):
            for file in files:
                producer.append_data_file(file.data)

    def stored(self, places: Iterable[Place]) -> dict[str, list[Place]]:
        sought, table = frozenset(places), self._load()
        files: Any = table.io  # a PyArrowFileIO
        scheme, netloc, folder = files.parse_location(table.location())
        store = files.fs_by_scheme(scheme, netloc)
        paths = [info.path for info in store.get_file_info(FileSelector(folder, recursive=True))]
        having: dict[str, list[Place]] = {}
        for path in paths:
            if path.endswith(".parquet") and (hit := sought.intersection(_places_in(store, path))):
                having[path] = sorted(hit)
        return having

    def set_back(self) -> None:
        snapshot = self._load().current_snapshot()
        assert snapshot is not None
        assert snapshot.parent_snapshot_id is not None
        with self._load().manage_snapshots() as manage:
            manage.set_current_snapshot(snapshot_id=snapshot.parent_snapshot_id)

    def expire_snapshots(self) -> None:
        table = self.table
        older = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != table.current_snapshot()]
        table.maintenance.expire_snapshots().by_ids(older).commit()

    def remove_files(self, chosen: Callable[[LiveFile], bool]) -> None:
        table = self._load()
        self._replace(table, [file for file in self._reader.live_files(table) if chosen(file)], [])

    def _replace(
        self, table: Table, old: Sequence[LiveFile], made: Iterable[pa.Table], *, branch: str = "main"
    ) -> None:
        fresh = [self._data_file(table, part) for rows in made if rows.num_rows for part in _by_partition(table, rows)]
        with table.transaction() as transaction, transaction.update_snapshot(branch=branch).overwrite() as producer:
            for file in old:
                producer.delete_data_file(file.data)
            for data in fresh:
                producer.append_data_file(data)

    def _data_file(self, table: Table, rows: pa.Table) -> DataFile:
        path = f"{table.location()}/data/other-{uuid4()}.parquet"
        with table.io.new_output(path).create() as stream:
            stream.write(self._write(rows))
        with table.io.new_input(path).open() as stream:
            footer = pq.read_metadata(stream)
        values = partition_of(table.schema(), table.spec(), rows.slice(0, 1).to_pylist()[0])
        return _described(table, path, footer, Record(*values), _bounds(table, rows) if self._bounds_nested else {})

    def _delete_file(
        self, table: Table, rows: pa.Table, content: DataFileContent, *, like: DataFile, **more: Any
    ) -> DataFile:
        path = f"{table.location()}/data/other-deletes-{uuid4()}.parquet"
        with table.io.new_output(path).create() as stream, pq.ParquetWriter(stream, rows.schema) as writer:
            writer.write_table(rows)
        size = len(table.io.new_input(path))
        file = DataFile.from_args(
            content=content,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=like.partition,
            record_count=rows.num_rows,
            file_size_in_bytes=size,
            **more,
        )
        file.spec_id = like.spec_id
        return file


_FIELD_ID = b"PARQUET:field_id"
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
"""Reserved by the specification of Iceberg."""
_POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)


class SnapshotReader:
    def __init__(self) -> None:
        self._snapshots: dict[tuple[int, int], list[LiveFile]] = {}
        self._manifests: dict[str, list[ManifestEntry]] = {}
        self._rows: dict[str, pa.Table] = {}

    def live_files(self, table: Table, branch: str = "main") -> list[LiveFile]:
        snapshot = table.snapshot_by_name(branch)
        return [] if snapshot is None else self.files_of(table, snapshot)

    def files_of(self, table: Table, snapshot: Snapshot) -> list[LiveFile]:
        key = (snapshot.snapshot_id, table.metadata.current_schema_id)
        if key not in self._snapshots:
            self._snapshots[key] = self._read_files(table, snapshot)
        return self._snapshots[key]

    def _read_files(self, table: Table, snapshot: Snapshot) -> list[LiveFile]:
        data: list[ManifestEntry] = []
        deletes: list[ManifestEntry] = []
        for manifest in snapshot.manifests(table.io):
            entries = self._entries(table, manifest)
            (data if manifest.content == ManifestContent.DATA else deletes).extend(entries)
        positions: dict[str, list[tuple[int, int]]] = {}
        equalities: list[tuple[ManifestEntry, frozenset[Place]]] = []
        for entry in deletes:
            rows = self._read(table, entry.data_file)
            if entry.data_file.content == DataFileContent.POSITION_DELETES:
                for path, position in zip(rows["file_path"].to_pylist(), rows["pos"].to_pylist(), strict=True):
                    positions.setdefault(path, []).append((position, entry.sequence_number or 0))
            else:
                equalities.append((entry, frozenset(places_of(rows))))
        return [_live(self._read(table, entry.data_file), entry, positions, equalities) for entry in data]

    def _entries(self, table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
        path = manifest.manifest_path
        if path not in self._manifests:
            self._manifests[path] = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        return self._manifests[path]

    def _read(self, table: Table, file: DataFile) -> pa.Table:
        path = file.file_path
        if path not in self._rows:
            with table.io.new_input(path).open() as stream:
                self._rows[path] = without_large_types(pq.read_table(stream).replace_schema_metadata(None))
        return _renamed(table.schema(), self._rows[path])


def _renamed(schema: Schema, rows: pa.Table) -> pa.Table:
    """Rename by field ids: `cast` takes children of structs by name, and makes nulls of renamed ones."""
    fields = [_renamed_field(schema, field) for field in rows.schema]
    columns = [
        pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        for field, column in zip(fields, rows.columns, strict=True)
    ]
    return pa.table(columns, pa.schema(fields))


def _renamed_field(schema: Schema, field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        field = field.with_type(pa.struct([_renamed_field(schema, child) for child in kind]))
    elif pa.types.is_list(kind):
        field = field.with_type(pa.list_(_renamed_field(schema, kind.value_field)))
    name = schema.find_column_name(int((field.metadata or {}).get(_FIELD_ID, -1)))
    return field if name is None else field.with_name(name.rpartition(".")[2])


def _live(
    rows: pa.Table,
    entry: ManifestEntry,
    positions: Mapping[str, list[tuple[int, int]]],
    equalities: Sequence[tuple[ManifestEntry, frozenset[Place]]],
) -> LiveFile:
    file, born = entry.data_file, entry.sequence_number or 0
    gone = {position for position, written in positions.get(file.file_path, ()) if written >= born}
    scope = (file.spec_id, _values(file.partition))
    keys = [
        named
        for delete, named in equalities
        if (delete.sequence_number or 0) > born
        and scope == (delete.data_file.spec_id, _values(delete.data_file.partition))
    ]
    if keys:
        named = frozenset().union(*keys)
        gone |= {position for position, place in enumerate(places_of(rows)) if place in named}
    return LiveFile(data=file, rows=rows, alive=tuple(at for at in range(rows.num_rows) if at not in gone))


def _values(partition: Record) -> tuple[Any, ...]:
    return tuple(partition[index] for index in range(len(partition)))


def _without(rows: pa.Table, gone: frozenset[Place]) -> pa.Table:
    return rows.filter(pa.array([place not in gone for place in places_of(rows)], pa.bool_()))


def _places_in(store: FileSystem, path: str) -> list[Place]:
    with store.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        return places_of(file.read(["kafka"])) if {"kafka", "key"} <= set(file.schema_arrow.names) else []


def _by_partition(table: Table, rows: pa.Table) -> Iterator[pa.Table]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows.to_pylist()):
        groups.setdefault(partition_of(table.schema(), table.spec(), row), []).append(number)
    for numbers in groups.values():
        yield rows.take(pa.array(numbers, pa.int64()))


def _equality_rows(table: Table, places: Sequence[Place]) -> pa.Table:
    kafka = schema_to_pyarrow(table.schema()).field("kafka")
    names = ("partition", "offset")
    fields = [kafka.type.field(name) for name in names]
    values = [dict(zip(names, place, strict=True)) for place in places]
    column = pa.field("kafka", pa.struct(fields), nullable=kafka.nullable, metadata=kafka.metadata)
    return pa.table([pa.array(values, column.type)], pa.schema([column]))


def _described(table: Table, path: str, footer: Any, partition: Record, bounds: Mapping[int, Bounds]) -> DataFile:
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=compute_statistics_plan(table.schema(), table.properties),
        parquet_column_mapping=ids_by_path(table.schema()),
    ).to_serialized_dict()
    statistics["lower_bounds"] |= {field_id: low for field_id, (low, _) in bounds.items()}
    statistics["upper_bounds"] |= {field_id: high for field_id, (_, high) in bounds.items()}
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=len(table.io.new_input(path)),
        **statistics,
    )
    file.spec_id = table.spec().spec_id
    return file


def _bounds(table: Table, rows: pa.Table) -> dict[int, Bounds]:
    bounds = {}
    for name in ("partition", "offset", "event_timestamp", "ingest_timestamp", "batch_start"):
        column = pc.struct_field(rows["kafka"].combine_chunks(), name)
        width = column.type.bit_width // 8
        column = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        low, high = pc.min_max(column).as_py().values()
        if low is not None:
            field_id = table.schema().find_field(f"kafka.{name}").field_id
            bounds[field_id] = tuple(value.to_bytes(width, "little", signed=True) for value in (low, high))
    return bounds


def _add_deletes(table: Table, files: Sequence[DataFile]) -> None:
    if files:
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as producer:
            add_delete_files(producer, table, files)
