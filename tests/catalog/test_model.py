from __future__ import annotations

import json
import pickle
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.digests import digest_text
from catalog.model import DataFileInfo, TopicRow, TranslatedRange, new_id
from catalog.partitioning import PartitionTuple
from tests.support.catalog.memory import TOPIC, span

COUNTS = st.dictionaries(st.integers(1, 10_000), st.integers(0, 2**40), max_size=4)
BOUNDS = st.dictionaries(st.integers(1, 10_000), st.binary(max_size=20), max_size=4)
VALUES = st.tuples(st.none() | st.binary(min_size=4, max_size=4), st.none() | st.binary(max_size=9))
PARTITIONS = st.one_of(
    st.builds(PartitionTuple.of_time, st.integers(-(2**31), 2**40), st.sampled_from([None, "day(13)", "hour(30)"])),
    st.builds(PartitionTuple, st.just("day(13), identity(101)"), st.none() | VALUES),
    st.just(PartitionTuple("day(30)", (None,))),  # rows without time, by other engines
    st.just(PartitionTuple("bucket[4](101)", (b"\1\0\0\0",))),
)
FILES = st.builds(
    DataFileInfo,
    path=st.text(min_size=1),
    size_bytes=st.integers(1, 2**40),
    rows=st.integers(1, 2**40),
    partition=PARTITIONS,
    raw_values=st.integers(0, 2**40),
    column_sizes=COUNTS,
    value_counts=COUNTS,
    null_value_counts=COUNTS,
    nan_value_counts=COUNTS,
    lower_bounds=BOUNDS,
    upper_bounds=BOUNDS,
    split_offsets=st.lists(st.integers(0, 2**40), max_size=3).map(tuple),
    min_timestamp=st.none() | st.integers(-(2**63), 2**63 - 1),
    max_timestamp=st.none() | st.integers(-(2**63), 2**63 - 1),
    digest=st.none() | st.integers(0, 2**128 - 1).map(digest_text),
    format=st.sampled_from(["parquet", "orc"]),
)


@given(st.lists(FILES, max_size=3))
def test_a_range_survives_json_and_pickle(files: list[DataFileInfo]):
    range_ = replace(span(0, 0, 1), files=tuple(files))
    assert TranslatedRange.from_json(json.loads(json.dumps(range_.to_json()))) == range_
    assert pickle.loads(pickle.dumps(range_)) == range_


@given(st.none() | FILES)
def test_a_range_from_before_it_could_have_several_files_is_read(file: DataFileInfo | None):
    range_ = replace(span(0, 0, 1), files=(file,) if file else ())
    stored = {"file": file.to_json() if file else None} | {
        name: value for name, value in range_.to_json().items() if name not in {"file", "files"}
    }
    assert range_.to_json() == stored
    assert TranslatedRange.from_json(stored) == range_


@given(FILES)
def test_a_file_from_before_digests_and_partitionings_has_none(file: DataFileInfo):
    later = {"digest", "partitioned_by", "partition_values", "format"}
    stored = {name: value for name, value in file.to_json().items() if name not in later}
    partition = PartitionTuple.of_time(file.partition.time_value)
    assert DataFileInfo.from_json(stored) == replace(file, digest=None, partition=partition, format="parquet")


def test_archivers_that_know_one_format_read_what_is_said_of_it():
    assert "format" not in DataFileInfo(path="p", size_bytes=1, rows=1).to_json()


@pytest.mark.parametrize(
    ("partition", "stored"),
    [
        (PartitionTuple.of_time(9), {"partition_value": 9, "partitioned_by": None}),
        (PartitionTuple.of_time(9, "day(13)"), {"partition_value": 9, "partitioned_by": "day(13)"}),
        (
            PartitionTuple("identity(5), hour(30)", (None, b"\t\0\0\0")),
            {"partition_value": 9, "partitioned_by": "identity(5), hour(30)", "partition_values": [None, "CQAAAA=="]},
        ),
        (
            PartitionTuple("day(13), identity(5)", None),
            {"partition_value": 0, "partitioned_by": "day(13), identity(5)"},
        ),
    ],
)
def test_a_partition_keeps_its_stored_form(partition: PartitionTuple, stored: dict[str, object]):
    assert partition.to_json() == stored
    assert PartitionTuple.from_json(stored) == partition


def test_descriptions_of_removals_name_a_time_twice():
    stored = {"partition_value": 9, "partitioned_by": "day(13)", "partition_values": ["CQAAAA=="]}
    assert PartitionTuple.from_json(stored) == PartitionTuple.of_time(9, "day(13)")


@pytest.mark.parametrize("topic_id", [None, UUID(int=5)])
def test_a_topic_survives_json(topic_id: UUID | None):
    row = replace(TOPIC, topic_id=topic_id)
    assert TopicRow.from_json(json.loads(json.dumps(row.to_json()))) == row


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (-1, 4)])
def test_a_range_holds_at_least_one_offset(start: int, end: int):
    with pytest.raises(ValueError, match="at least one offset"):
        span(0, start, end, with_file=False)


def test_ids_sort_by_time():
    ids = [new_id() for _ in range(3)]
    assert len(set(ids)) == 3
    assert {len(identifier) for identifier in ids} == {26}
