from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import TableError
from catalog.iceberg.offsets import (
    advance,
    decode_offsets,
    decode_ranges,
    decode_spans,
    encode_offsets,
    encode_ranges,
    encode_spans,
    spans,
)
from catalog.model import PartitionOffset
from tests.support.catalog.memory import span

OFFSETS = st.dictionaries(
    st.integers(0, 2**31 - 1),
    st.builds(PartitionOffset, next_offset=st.integers(0, 2**63 - 1), leader_epoch=st.integers(-1, 2**31 - 1)),
)


@given(OFFSETS)
def test_offsets_survive_the_property(offsets: dict[int, PartitionOffset]):
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_the_property_is_compact_and_stable():
    offsets = {1: PartitionOffset(next_offset=7), 0: PartitionOffset(next_offset=123, leader_epoch=4)}
    assert encode_offsets(offsets) == '{"0":[123,4],"1":[7,-1]}'


def test_ten_thousand_partitions_stay_small():
    many = {number: PartitionOffset(next_offset=9_999_999_999, leader_epoch=99) for number in range(10_000)}
    assert len(encode_offsets(many)) < 256 * 1024


@pytest.mark.parametrize("text", ["", "[]", "{", '{"0":5}', '{"a":[1,2]}', '{"0":[1]}', '{"0":[1,null]}'])
def test_a_property_changed_by_others_is_named(text: str):
    with pytest.raises(TableError, match=r"archiver\.offsets"):
        decode_offsets(text)


def test_ranges_of_a_snapshot_are_spans_of_partitions():
    ranges = (span(1, 5, 9), span(0, 20, 30), span(0, 10, 20))
    assert encode_ranges(ranges) == '{"0":[10,30],"1":[5,9]}'
    assert decode_ranges(encode_ranges(ranges)) == spans(ranges) == {0: (10, 30), 1: (5, 9)}


def test_gaps_of_a_partition_stay_apart():
    lost = (span(0, 20, 25), span(1, 5, 9), span(0, 10, 15))
    assert encode_spans(lost) == '{"0":[10,15,20,25],"1":[5,9]}'
    assert decode_spans(encode_spans(lost)) == ((0, 10, 15), (0, 20, 25), (1, 5, 9))
    assert decode_spans("{}") == ()


@pytest.mark.parametrize("second", [(11, 20), (9, 20), (0, 10)])
def test_gaps_and_overlaps_are_no_chain(second: tuple[int, int]):
    with pytest.raises(ValueError, match="no chain"):
        spans((span(0, 0, 10), span(0, *second)))


def test_a_range_without_leader_epoch_keeps_the_one_before():
    before = {0: PartitionOffset(next_offset=10, leader_epoch=4), 9: PartitionOffset(next_offset=1)}
    after = advance(before, (span(0, 10, 20, epoch=-1), span(1, 0, 5, epoch=2)))
    assert after == {
        0: PartitionOffset(next_offset=20, leader_epoch=4),
        1: PartitionOffset(next_offset=5, leader_epoch=2),
        9: PartitionOffset(next_offset=1),
    }
