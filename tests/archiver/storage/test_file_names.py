from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from archiver.storage.file_names import LONGEST_TOPIC, DataFileName, topic_part
from catalog.model import new_id

KAFKA_NAMES = st.text("abcXYZ019._-", min_size=1, max_size=60)


@given(topic=KAFKA_NAMES, partition=st.integers(0, 2**31 - 1), start=st.integers(0, 2**63 - 1))
def test_a_name_says_what_it_was_made_of(topic: str, partition: int, start: int) -> None:
    for position in ({"partition": partition, "start_offset": start}, {}):
        name = DataFileName(topic=topic, ulid=new_id(), extension="parquet", **position)
        assert DataFileName.parse(str(name)) == name


def test_it_says_when_it_was_given() -> None:
    ulid = ULID.from_timestamp(1_767_225_600.5)
    assert DataFileName(topic="t", ulid=str(ulid), extension="parquet").created_ms == 1_767_225_600_500


@pytest.mark.parametrize("length", [100, 101, 249])
def test_a_long_topic_is_cut(length: int) -> None:
    topics = ["x" * (length - 1) + end for end in "ab"]
    names = [
        DataFileName(topic=topic, ulid=new_id(), extension="parquet", partition=2**31 - 1, start_offset=2**63 - 1)
        for topic in topics
    ]
    parsed = [DataFileName.parse(str(name)) for name in names]
    assert [len(str(name)) for name in names] == [LONGEST_TOPIC + len("-2147483647-.parquet-") + 20 + 26] * 2
    assert [name and name.topic for name in parsed] == [topic_part(topic) for topic in topics]
    assert [[bool(name and name.is_of(topic)) for topic in topics] for name in parsed] == [[True, False], [False, True]]


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", "a-0-00000000000000000001", "...", "x" * 87 + "-reprocessed-01", "9lives-", "-" * 249],
)
def test_topics_that_look_like_other_parts_of_a_name(topic: str) -> None:
    name = DataFileName(topic=topic, ulid=new_id(), extension="parquet", partition=0, start_offset=7)
    parsed = DataFileName.parse(str(name))
    assert parsed is not None
    assert (parsed.partition, parsed.start_offset, parsed.is_of(topic)) == (0, 7, True)
    assert not parsed.is_of(topic[:-1] or "x")
    several = DataFileName.parse(str(DataFileName(topic=topic, ulid=new_id(), extension="parquet")))
    assert several is not None
    assert (several.partition, several.is_of(topic)) == (None, True)


def test_names_with_whole_topics_stay_readable() -> None:
    topic = "x" * 249
    name = DataFileName.parse(f"{topic}-0-00000000000000000012-01jz0000000000000000000000.parquet")
    assert name is not None
    assert name.is_of(topic)
    assert not name.is_of(topic[:-1])


@pytest.mark.parametrize(
    "name",
    [
        "00000-12-7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e-0-00001.parquet",  # Spark's
        "00000-0-7d0a5b39-4f6e-4b8a-9a55-0d3f6a3c1b2e.parquet",  # pyiceberg's
        "orders-0-00000000000000000012-01jz0000000000000000000000.parquet.crc",
        "orders-0-00000000000000000012-01jz000000000000000000000.parquet",
        "orders-0-12-01jz0000000000000000000000.parquet",
        "orders-0-00000000000000000012-01JZ0000000000000000000000.parquet",
        "orders-0-00000000000000000012-81jz0000000000000000000000.parquet",
        "orders-0-00000000000000000012-01jzuilo000000000000000000.parquet",
    ],
)
def test_names_that_others_give(name: str) -> None:
    assert DataFileName.parse(name) is None
