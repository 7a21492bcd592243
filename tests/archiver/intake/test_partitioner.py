"""Partitions of keys, as Kafka's clients."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from archiver.errors import BadBatch
from archiver.intake.partitioner import MOST_KEY_BYTES, partitions_of

KEYS = st.lists(st.none() | st.binary(max_size=40), max_size=20)


@given(keys=KEYS, skipped=st.integers(0, 3), turn=st.integers(0, 9))
def test_keys_choose_as_in_kafka(keys: list[bytes | None], skipped: int, turn: int) -> None:
    column = pa.array(keys, pa.binary()).slice(skipped)
    expected = [turn % 7 if key is None else (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys[skipped:]]
    assert partitions_of(column, 7, turn=turn).tolist() == expected


def test_very_long_keys_choose_no_partition() -> None:
    assert len(partitions_of(pa.array([bytes(MOST_KEY_BYTES)], pa.binary()), 3, turn=0)) == 1
    with pytest.raises(BadBatch, match="a key has 65,537 bytes: keys of more than 65,536 can't choose the partition"):
        partitions_of(pa.array([bytes(MOST_KEY_BYTES + 1)], pa.binary()), 3, turn=0)
