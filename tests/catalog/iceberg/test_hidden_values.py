"""Values hidden by truncation, judged by Iceberg's libraries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
)
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IntegerType, LongType, NestedField

from archiver.files.row_partitions import transformed
from archiver.topics.hidden_rows import hidden_rows
from catalog.iceberg.hidden_values import HiddenValues, hidden_values
from catalog.iceberg.truncation import highest_wrapped, lowest_of
from tests.support.catalog.memory import MemoryCatalog, change

TYPES = {"int": (IntegerType(), pa.int32()), "long": (LongType(), pa.int64())}


@pytest.mark.parametrize("kind", TYPES)
@given(width=st.integers(1, 1_000_000) | st.integers(0, 19).map(lambda power: 1 << power))
def test_values_above_their_truncation_are_not_hidden(kind: str, width: int) -> None:
    iceberg, arrow = TYPES[kind]
    low = lowest_of(iceberg)
    high = highest_wrapped(f"truncate[{width}]", iceberg)
    values = [low, low + width // 2, low + width - 1, low + width, -width, -1, 0, width, -low - 1]
    values += [] if high is None else [high, high + 1]
    truncated = transformed(f"truncate[{width}]", pa.array(values, arrow)).to_pylist()
    for value, step in zip(values, truncated, strict=True):
        assert (step > value) == (high is not None and value <= high), (value, step)


def test_other_transforms_and_types_hide_nothing() -> None:
    assert highest_wrapped("bucket[10]", IntegerType()) is None
    assert highest_wrapped("truncate[8]", LongType()) is None
    assert highest_wrapped("truncate[10]", IntegerType()) == -2_147_483_641


@pytest.fixture
def lake(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path)


def partitioned(lake: MemoryCatalog, column: str, transform: str) -> TableMetadata:
    metadata = lake.metadata
    source = metadata.schema().find_field(column).field_id
    field = PartitionField(source, 2000 + len(metadata.partition_specs), parse_transform(transform), "step")
    spec = PartitionSpec(field, spec_id=len(metadata.partition_specs))
    lake.change(AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id}))
    return lake.metadata


def never(_: Snapshot) -> list[ManifestFile]:
    raise AssertionError("no manifest list need be read")


def test_the_current_spec_names_column_and_range(lake: MemoryCatalog) -> None:
    (hidden,) = hidden_values(partitioned(lake, "val.id", "truncate[10]"), never)
    low = -(1 << 63)
    assert hidden == HiddenValues(column="val.id", transform="truncate[10]", low=low, high=low + 7)
    (remark,) = hidden_rows(lake.load())
    assert remark == (
        "the table has `truncate(10, val.id)` as a partition: engines that filter by val.id leave out rows with the "
        "values -9223372036854775808 to -9223372036854775801 (9223372036854775808 to 9223372036854775815 of an unsigned"
        " field). Replays and queries without such a filter have them. To have them found, set `partition_by` to a "
        "width that is a power of two, to the column itself or to bucket, then run `archiver repartition orders` and"
        " `archiver compact orders --repartition`"
    )


@pytest.mark.parametrize(
    ("column", "transform"), [("kafka.offset", "truncate[10]"), ("val.id", "truncate[16]"), ("val.id", "bucket[10]")]
)
def test_offsets_powers_of_two_and_buckets_hide_nothing(lake: MemoryCatalog, column: str, transform: str) -> None:
    assert hidden_values(partitioned(lake, column, transform), never) == ()


def test_a_widened_column_has_the_range_of_both_types(tmp_path: Path) -> None:
    lake = MemoryCatalog(tmp_path, NestedField(101, "id", IntegerType()))
    partitioned(lake, "val.id", "truncate[10]")
    wide = change(NestedField(101, "id", LongType())).schema.model_copy(update={"schema_id": 1})
    lake.change(AddSchemaUpdate(schema=wide), SetCurrentSchemaUpdate.model_validate({"schema-id": 1}))
    assert [value.high for value in hidden_values(lake.metadata, never)] == [-(1 << 63) + 7, -(1 << 31) + 7]


def test_an_earlier_spec_counts_while_it_has_files(lake: MemoryCatalog) -> None:
    before = partitioned(lake, "val.id", "truncate[10]").default_spec_id
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=1, manifest_list="file:///nowhere.avro")
    metadata = partitioned(lake, "val.id", "truncate[16]").model_copy(
        update={"snapshots": [snapshot], "current_snapshot_id": 1}
    )

    def listed(live: int) -> list[ManifestFile]:
        return [ManifestFile.from_args(partition_spec_id=before, added_files_count=0, existing_files_count=live)]

    assert hidden_values(metadata, lambda _: listed(0)) == ()
    (hidden,) = hidden_values(metadata, lambda _: listed(1))
    assert (hidden.transform, hidden.is_current) == ("truncate[10]", False)
