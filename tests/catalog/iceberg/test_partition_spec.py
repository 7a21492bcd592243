"""Partition specs of columns."""

from __future__ import annotations

import struct
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from catalog.errors import UnfitPartitioning
from catalog.iceberg.partition_spec import iceberg_spec, partitioning_for, record_of, tuple_of
from catalog.partitioning import PartitionColumn, Partitioning, PartitionTerm, PartitionTuple
from schema_mapping.columns.fixed import FLAT_INGEST_TIMESTAMP_ID


def schema(*names: str, number: IcebergType | None = None) -> Schema:
    fields = [NestedField(10 + index, name, StringType()) for index, name in enumerate(names)]
    fields.append(NestedField(30, "n", number or IntegerType()))
    return Schema(
        NestedField(FLAT_INGEST_TIMESTAMP_ID, "ingest_timestamp", TimestamptzType()),
        NestedField(1000, "val", StructType(*fields)),
    )


def terms(*texts: str) -> list[PartitionTerm]:
    return [PartitionTerm.of(text) for text in texts]


@pytest.mark.parametrize("texts", [["val.a", "val.b"], ["day", "val.a", "val.b"], ["val.b", "day", "val.a"]])
def test_every_term_may_go_by_an_earlier_name(texts: list[str]) -> None:
    now, earlier = schema("renamed", "too"), [schema("renamed", "b"), schema("a", "b")]
    partitioning = partitioning_for(terms(*texts), now, "flat", earlier=iter(earlier))
    ids = {"val.a": 10, "val.b": 11, "day": FLAT_INGEST_TIMESTAMP_ID}
    assert [column.source_id for column in partitioning.columns] == [ids[text] for text in texts]


@pytest.mark.parametrize("term", [PartitionTerm("day", None), PartitionTerm("day", "ingest_timestamp")])
def test_ingest_time_partition_has_one_name_in_all_spellings(term: PartitionTerm) -> None:
    (column,) = partitioning_for([term], schema("a"), "flat").columns
    assert column.name == "ingest_day"


@pytest.mark.parametrize("text", ["val.n", "truncate(2, val.n)"])
def test_values_of_a_source_that_this_commit_widens_are_read(text: str) -> None:
    narrow = schema("a")
    partitioning = partitioning_for(terms("day", text), narrow, "flat")
    spec = iceberg_spec(partitioning)
    day = struct.pack("<i", 20_000)
    for value, number in ((struct.pack("<q", 1 << 40), 1 << 40), (struct.pack("<i", 70), 70), (None, None)):
        partition = PartitionTuple(partitioning.by, (day, value))
        for table_schema in (narrow, schema("a", number=LongType())):
            record = record_of(partition, spec, table_schema)
            assert (record[0], record[1]) == (20_000, number)


@pytest.mark.parametrize(
    ("kind", "transform", "values"),
    [
        (IntegerType(), "identity", (-7, 0, 2**31 - 1)),
        (LongType(), "truncate[10]", (-20, 2**40)),
        (StringType(), "identity", ("", "日本", "zz" * 200)),
        (StringType(), "bucket[16]", (0, 15)),
        (BinaryType(), "truncate[4]", (b"", b"\0\xff")),
        (FixedType(3), "identity", (b"abc",)),
        (BooleanType(), "identity", (True, False)),
        (DoubleType(), "identity", (-0.0, 1.5)),
        (DecimalType(20, 0), "identity", (Decimal(2**64 - 1), Decimal(0))),
        (DecimalType(6, 2), "identity", (Decimal("-1.50"), Decimal("0.00"))),
        (UUIDType(), "identity", (UUID(int=7),)),
        (DateType(), "identity", (20_000, -1)),
        (TimeType(), "identity", (1_000_000,)),
        (TimestamptzType(), "identity", (1_767_225_600_000_000,)),
        (TimestamptzType(), "day", (20_000,)),
        (TimestamptzType(), "hour", (480_000,)),
        (StringType(), "void", ()),
    ],
)
def test_values_of_a_manifest_come_back_as_they_are(
    kind: IcebergType, transform: str, values: tuple[object, ...], tmp_path: Path
) -> None:
    known_schema = Schema(NestedField(7, "one", kind), NestedField(8, "other", IntegerType()))
    spec = PartitionSpec(
        PartitionField(source_id=8, field_id=1000, transform=parse_transform("bucket[4]"), name="b"),
        PartitionField(source_id=7, field_id=1001, transform=parse_transform(transform), name="p"),
    )
    expected = [Record(3, value) for value in (*values, None)]
    path = str(tmp_path / "m.avro")
    read = through_manifest(path, expected, spec, known_schema)
    places = [tuple_of(tuple(record[at] for at in range(len(record))), spec, known_schema) for record in read]
    assert {partition.by for partition in places if partition} == {f"bucket[4](8), {transform}(7)"}
    assert (
        through_manifest(
            path, [record_of(partition, spec, known_schema) for partition in places if partition], spec, known_schema
        )
        == read
    )
    assert len(read) == len(expected)
    assert tuple_of((3, None), spec, Schema(NestedField(8, "other", IntegerType()))) is None


def through_manifest(path: str, partitions: list[Record], spec: PartitionSpec, known: Schema) -> list[Record]:
    io = PyArrowFileIO()
    with write_manifest(2, spec, known, io.new_output(path), 1, "null") as writer:
        for partition in partitions:
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path="p",
                file_format=FileFormat.PARQUET,
                partition=partition,
                record_count=1,
                file_size_in_bytes=1,
            )
            file.spec_id = 0
            writer.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=file))
    return [entry.data_file.partition for entry in writer.to_manifest_file().fetch_manifest_entry(io)]


def test_decimals_that_may_be_negative_are_not_truncated() -> None:
    """The lowest would get a digit more than the column has."""
    signed = schema("a", number=DecimalType(4, 2))
    with pytest.raises(UnfitPartitioning, match="truncated decimals"):
        partitioning_for(terms("truncate(10, val.n)"), signed, "flat")
    for text in ("val.n", "bucket(10, val.n)"):
        assert len(partitioning_for(terms(text), signed, "flat").columns) == 1
    unsigned = schema("a", number=DecimalType(20, 0))
    assert len(partitioning_for(terms("truncate(10, val.n)"), unsigned, "flat").columns) == 1


@pytest.mark.parametrize("kind", [IntegerType(), LongType()])
def test_whole_numbers_are_truncated_to_powers_of_two_alone(kind: IcebergType) -> None:
    """Other widths wrap at the lowest numbers. Existing partitions stay."""
    table = schema("a", number=kind)
    with pytest.raises(UnfitPartitioning, match=r"can't be truncated to a width of 1000: .* such as 512,") as error:
        partitioning_for(terms("day", "truncate(1000, val.n)"), table, "flat")
    assert error.value.context["partition_by"] == "truncate(1000, val.n)"
    for text in ("truncate(1, val.n)", "truncate(1024, val.n)", "truncate(1000, val.a)"):
        assert len(partitioning_for(terms(text), table, "flat").columns) == 1
    current = Partitioning((PartitionColumn("step", "truncate[1000]", 30),))
    kept = partitioning_for(terms("truncate(1000, val.n)"), table, "flat", current=current)
    assert kept.by == "truncate[1000](30)"
    with pytest.raises(UnfitPartitioning):
        partitioning_for(terms("truncate(100, val.n)"), table, "flat", current=current)
