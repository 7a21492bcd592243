"""A table of manifests whose files don't exist."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.typedef import Record

from archiver.storage.row_columns import MICROS_PER_MILLI
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.raw_mapping import RawMapping
from schema_mapping.row import RowMapping, table_schema
from tests.support.catalog.delete_manifests import DeleteManifest

ROWS = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)
SCHEMA: Schema = table_schema(
    arrow_field("key", ROWS.key.arrow_type, 1), arrow_field("val", ROWS.value.arrow_type, 2), ROWS.partition_source
)
DAY = PartitionSpec(PartitionField(13, 1000, DayTransform(), "ingest_day"), spec_id=0)
WHOLE = PartitionSpec(*UNPARTITIONED_PARTITION_SPEC.fields, spec_id=1)
DAY_AND_EPOCH = PartitionSpec(
    PartitionField(13, 1000, DayTransform(), "ingest_day"),
    PartitionField(19, 1001, IdentityTransform(), "epoch"),
    spec_id=2,
)
SPECS = (DAY, WHOLE, DAY_AND_EPOCH)
TIMES = {12: MICROS_PER_MILLI, 17: MICROS_PER_MILLI, 18: 1}


class ListedTable:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.io = PyArrowFileIO()
        self.manifests: list[ManifestFile] = []

    def add(
        self,
        files: Sequence[DataFile],
        *,
        sequence: int = 1,
        spec: PartitionSpec = DAY,
        deletes: bool = False,
        status: ManifestEntryStatus = ManifestEntryStatus.ADDED,
    ) -> Path:
        """Entries with another status than ADDED carry `sequence`."""
        own = None if status == ManifestEntryStatus.ADDED else sequence
        path = self.folder / f"manifest-{uuid4()}.avro"
        kind = DeleteManifest if deletes else ManifestWriterV2
        with kind(spec, SCHEMA, self.io.new_output(path.as_uri()), 1, "deflate") as writer:
            for file in files:
                file.spec_id = spec.spec_id
                numbers = {"sequence_number": own, "file_sequence_number": own}
                writer.add_entry(ManifestEntry.from_args(status=status, snapshot_id=1, data_file=file, **numbers))
        manifest = writer.to_manifest_file()
        manifest.sequence_number = sequence if own is None else 9
        manifest.min_sequence_number = sequence
        self.manifests.append(manifest)
        return path

    def table(self, *, parent: Table | None = None, **told: int) -> Table:
        path = (self.folder / f"snap-{uuid4()}.avro").as_uri()
        with write_manifest_list(2, self.io.new_output(path), 1, None, 99, "deflate") as writer:
            writer.add_manifests(self.manifests)
        numbers = {name.replace("_", "-"): str(number) for name, number in told.items()}
        before = (
            [] if parent is None else [snapshot.model_dump(by_alias=True) for snapshot in parent.metadata.snapshots]
        )
        number = 1 + len(before)
        snapshot = {
            "snapshot-id": number,
            "parent-snapshot-id": number - 1 or None,
            "timestamp-ms": number,
            "sequence-number": 99,
            "manifest-list": path,
            "summary": {"operation": "append", **(numbers or {"total-data-files": str(self._files())})},
        }
        metadata = TableMetadataV2.model_validate(
            {
                "format-version": 2,
                "location": self.folder.as_uri(),
                "last-updated-ms": 1,
                "last-column-id": 200,
                "last-sequence-number": 99,
                "schemas": [SCHEMA.model_dump()],
                "current-schema-id": SCHEMA.schema_id,
                "partition-specs": [spec.model_dump() for spec in SPECS],
                "default-spec-id": 0,
                "last-partition-id": 1001,
                "snapshots": [*before, snapshot],
                "current-snapshot-id": number,
                "refs": {"main": {"snapshot-id": number, "type": "branch"}},
            }
        )
        return Table(("kafka", "orders"), metadata, "", self.io, catalog=None)  # type: ignore[arg-type]

    def _files(self) -> int:
        data = [manifest for manifest in self.manifests if manifest.content == ManifestContent.DATA]
        return sum((item.added_files_count or 0) + (item.existing_files_count or 0) for item in data)


def data_file(
    path: str,
    place: Sequence[Any],
    *,
    rows: int = 10,
    partitions: tuple[int, int] | None = None,
    offsets: tuple[int, int] | None = None,
    times: Mapping[int, int | None] | None = None,
) -> DataFile:
    """`times` are ms by field id; None means no value."""
    bounds = {10: ("<i", partitions), 11: ("<q", offsets)}
    existing = {item: (struct.pack(code, low), struct.pack(code, high)) for item, (code, (low, high)) in _given(bounds)}
    for value, time in (times or {}).items():
        if time is not None:
            existing[value] = (struct.pack("<q", 0), struct.pack("<q", time * TIMES[value]))
    nulls = {item: rows if time is None else 0 for item, time in (times or {}).items()}
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*place),
        record_count=rows,
        file_size_in_bytes=1000 + rows,
        value_counts=dict.fromkeys({*existing, *nulls}, rows),
        null_value_counts=dict.fromkeys(existing, 0) | nulls,
        lower_bounds={item: low for item, (low, _) in existing.items()},
        upper_bounds={item: high for item, (_, high) in existing.items()},
    )


def position_deletes(path: str, place: Sequence[Any], *, of: tuple[str, str] | None = None) -> DataFile:
    low, high = ({}, {}) if of is None else ({2147483546: of[0].encode()}, {2147483546: of[1].encode()})
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*place),
        record_count=1,
        file_size_in_bytes=100,
        lower_bounds=low,
        upper_bounds=high,
    )


def _given(bounds: Mapping[int, tuple[str, tuple[int, int] | None]]) -> list[tuple[int, tuple[str, tuple[int, int]]]]:
    return [(value, (code, pair)) for value, (code, pair) in bounds.items() if pair is not None]
