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
from tests.support.catalog.memory import TOPIC, span

COUNTS = st.dictionaries(st.integers(1, 10_000), st.integers(0, 2**40), max_size=4)
BOUNDS = st.dictionaries(st.integers(1, 10_000), st.binary(max_size=20), max_size=4)
FILES = st.builds(
    DataFileInfo,
    path=st.text(min_size=1),
    size_bytes=st.integers(1, 2**40),
    rows=st.integers(1, 2**40),
    partition_value=st.integers(-(2**31), 2**31 - 1),
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
    partitioned_by=st.none() | st.just("day(13)"),
    format=st.sampled_from(["parquet", "orc"]),
)


@given(st.lists(FILES, max_size=3))
def test_a_range_survives_json_and_pickle(files: list[DataFileInfo]):
    one = replace(span(0, 0, 1), files=tuple(files))
    assert TranslatedRange.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert pickle.loads(pickle.dumps(one)) == one


@given(st.none() | FILES)
def test_a_range_from_before_it_could_have_several_files_is_read(file: DataFileInfo | None):
    one = replace(span(0, 0, 1), files=(file,) if file else ())
    stored = {"file": file.to_json() if file else None} | {
        name: value for name, value in one.to_json().items() if name not in {"file", "files"}
    }
    assert one.to_json() == stored
    assert TranslatedRange.from_json(stored) == one


@given(FILES)
def test_a_file_from_before_digests_and_partitionings_has_none(file: DataFileInfo):
    later = {"digest", "partitioned_by", "format"}
    stored = {name: value for name, value in file.to_json().items() if name not in later}
    assert DataFileInfo.from_json(stored) == replace(file, digest=None, partitioned_by=None, format="parquet")


def test_archivers_that_know_one_format_read_what_is_said_of_it():
    assert "format" not in DataFileInfo(path="p", size_bytes=1, rows=1, partition_value=0).to_json()


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
    assert {len(one) for one in ids} == {26}
