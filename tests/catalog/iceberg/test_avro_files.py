"""Manifests and manifest lists, against pyiceberg's."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from catalog.iceberg.avro_files import ManifestFileWriter, ManifestListFile

SNAPSHOT = 7
SCHEMA = Schema(
    NestedField(1, "time", TimestamptzType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "number", LongType(), required=True),
)
DAY = PartitionSpec(PartitionField(1, 1000, DayTransform(), "time_day"), spec_id=0)
RENAMED = PartitionSpec(PartitionField(1, 1000, DayTransform(), "day"), spec_id=0)
COLUMNS = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "name"),
    PartitionField(3, 1001, BucketTransform(16), "number_bucket"),
    spec_id=3,
)
PARTITIONINGS = [(UNPARTITIONED_PARTITION_SPEC, ()), (DAY, (1,)), (RENAMED, (2,)), (COLUMNS, ("a", 5)), (DAY, (None,))]


class _Kept(BytesIO):
    def close(self) -> None:
        self.found = self.getvalue()
        super().close()


class _File(OutputFile):
    def __len__(self) -> int:
        return len(self.stream.found)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> Any:
        raise NotImplementedError

    def create(self, overwrite: bool = False) -> _Kept:
        self.stream = _Kept()
        return self.stream


def data_file(partition: tuple[object, ...]) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="s3://lake/a.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=3,
        file_size_in_bytes=100,
        column_sizes={1: 40},
        value_counts={1: 3},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"a"},
        upper_bounds={1: b"b"},
        split_offsets=[4],
        sort_order_id=1,
    )
    file.spec_id = 0
    return file


def written(kind: type[ManifestWriterV2], spec: PartitionSpec, partition: tuple[object, ...], codec: str) -> Any:
    file = _File("s3://lake/m0.avro")
    with kind(spec, SCHEMA, file, SNAPSHOT, codec) as writer:  # type: ignore[arg-type]
        for added in (data_file(partition), data_file(partition)):
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, sequence_number=None, data_file=added
            )
            writer.add(entry)
    return file.stream.found, writer.to_manifest_file()


@pytest.mark.parametrize("codec", ["gzip", "null", "zstd"])
def test_a_manifest_is_what_pyiceberg_writes(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", lambda size: b"s" * size)  # the marks between blocks
    for spec, partition in PARTITIONINGS * 2:
        ours, theirs = (written(kind, spec, partition, codec) for kind in (ManifestFileWriter, ManifestWriterV2))
        assert ours == theirs


@pytest.mark.parametrize("version", [1, 2])
def test_a_list_reads_as_pyiceberg_reads_it(version: int, tmp_path: Path) -> None:
    path = str(tmp_path / "snap.avro")
    io = PyArrowFileIO()
    manifests = [written(ManifestWriterV2, spec, partition, "gzip")[1] for spec, partition in PARTITIONINGS]
    with write_manifest_list(version, io.new_output(path), SNAPSHOT, None, 4, "gzip") as writer:  # type: ignore[arg-type]
        writer.add_manifests(manifests[:3])
        writer.add_manifests(manifests[3:])
    for _ in range(2):
        listed = ManifestListFile.read(io.new_input(path))
        assert listed == list(read_manifest_list(io.new_input(path)))
        assert [manifest.sequence_number for manifest in listed] == [4 if version == 2 else 0] * len(manifests)


def test_a_file_that_is_no_list_raises_what_pyiceberg_raises(tmp_path: Path) -> None:
    (tmp_path / "snap.avro").write_bytes(b"Obj\x01\x00" + b"s" * 16)
    file = PyArrowFileIO().new_input(str(tmp_path / "snap.avro"))
    with pytest.raises(LookupError):
        ManifestListFile.read(file)
