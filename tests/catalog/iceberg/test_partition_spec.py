"""Specs of columns: sources by earlier names, the name of a time's field, and values of a source that grew wider."""

from __future__ import annotations

import struct

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from catalog.errors import UnfitPartitioning
from catalog.iceberg.partition_spec import iceberg_spec, partitioning_for, record_of
from catalog.partitioning import PartitionTerm, PartitionTuple
from schema_mapping.columns.fixed import FLAT_INGEST_TIMESTAMP_ID


def schema(*names: str, number: IcebergType | None = None) -> Schema:
    fields = [NestedField(10 + place, name, StringType()) for place, name in enumerate(names)]
    fields.append(NestedField(30, "n", number or IntegerType()))
    return Schema(
        NestedField(FLAT_INGEST_TIMESTAMP_ID, "ingest_timestamp", TimestamptzType()),
        NestedField(1000, "val", StructType(*fields)),
    )


def terms(*texts: str) -> list[PartitionTerm]:
    return [PartitionTerm.of(each) for each in texts]


@pytest.mark.parametrize("texts", [["val.a", "val.b"], ["day", "val.a", "val.b"], ["val.b", "day", "val.a"]])
def test_every_term_may_go_by_an_earlier_name(texts: list[str]) -> None:
    now, earlier = schema("renamed", "too"), [schema("renamed", "b"), schema("a", "b")]
    found = partitioning_for(terms(*texts), now, "flat", earlier=iter(earlier))
    wanted = {"val.a": 10, "val.b": 11, "day": FLAT_INGEST_TIMESTAMP_ID}
    assert [each.source_id for each in found.columns] == [wanted[each] for each in texts]


@pytest.mark.parametrize("term", [PartitionTerm("day", None), PartitionTerm("day", "ingest_timestamp")])
def test_a_time_of_the_ingest_timestamp_has_one_name_however_it_is_written(term: PartitionTerm) -> None:
    (column,) = partitioning_for([term], schema("a"), "flat").columns
    assert column.name == "ingest_day"


@pytest.mark.parametrize("text", ["val.n", "truncate(10, val.n)"])
def test_values_of_a_source_that_this_commit_widens_are_read(text: str) -> None:
    """Files are described before the commit that turns the int into a long."""
    narrow = schema("a")
    partitioning = partitioning_for(terms("day", text), narrow, "flat")
    spec = iceberg_spec(partitioning)
    day = struct.pack("<i", 20_000)
    for value, number in ((struct.pack("<q", 1 << 40), 1 << 40), (struct.pack("<i", 70), 70), (None, None)):
        place = PartitionTuple(partitioning.by, (day, value))
        for known in (narrow, schema("a", number=LongType())):
            found = record_of(place, spec, known)
            assert (found[0], found[1]) == (20_000, number)


def test_decimals_that_may_be_negative_are_not_truncated() -> None:
    """The lowest would get a digit more than the column has. Unsigned numbers are never below zero."""
    signed = schema("a", number=DecimalType(4, 2))
    with pytest.raises(UnfitPartitioning, match="truncated decimals"):
        partitioning_for(terms("truncate(10, val.n)"), signed, "flat")
    for text in ("val.n", "bucket(10, val.n)"):
        assert len(partitioning_for(terms(text), signed, "flat").columns) == 1
    unsigned = schema("a", number=DecimalType(20, 0))
    assert len(partitioning_for(terms("truncate(10, val.n)"), unsigned, "flat").columns) == 1
