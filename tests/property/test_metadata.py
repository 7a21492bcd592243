"""Metadata against plain dicts: the latest value is in force, and conditions find the records that have it."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.records import RECORDS
from archiver.records.metadata_terms import names_key, with_metadata
from archiver.records.where import Where
from catalog.record_metadata import MetadataEntry, MetadataTarget, OfKey, OfOffsets, current
from tests.support.archive.metadata_entries import entry_of

KEYS = (b"", b"a", b"ab", b"\xff")
NAMES = ("case", "note")
VALUES = ("", "1", "12", "2", "é")
ROWS = tuple((partition, offset, key) for partition in (0, 1) for offset, key in enumerate((None, *KEYS, b"a", None)))
TARGETS = st.sampled_from(KEYS).map(OfKey) | st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 4)).map(
    lambda numbers: OfOffsets(numbers[0], numbers[1], numbers[1] + numbers[2])
)
ACTS = st.lists(
    st.tuples(TARGETS, st.sampled_from(NAMES), st.none() | st.sampled_from(VALUES), st.integers(0, 3)), max_size=25
)
COMPARISONS = {
    "=": lambda value, other: value == other,
    "!=": lambda value, other: value != other,
    "<": lambda value, other: value < other,
    "starts with": lambda value, other: value.startswith(other),
    "contains": lambda value, other: other in value,
}


def entries_of(acts: list[tuple[MetadataTarget, str, str | None, int]]) -> list[MetadataEntry]:
    """Times may be equal, or go back, as the clock of another database may."""
    return [
        entry_of(target, name, value, seconds=seconds, sequence=number)
        for number, (target, name, value, seconds) in enumerate(acts)
    ]


def model(acts: list[tuple[MetadataTarget, str, str | None, int]]) -> dict[tuple[MetadataTarget, str], str]:
    values: dict[tuple[MetadataTarget, str], str | None] = {}
    for target, name, value, _ in sorted(acts, key=lambda act: act[3]):  # stable: the order breaks ties
        values[target, name] = value
    return {place: value for place, value in values.items() if value is not None}


def is_of(target: MetadataTarget, row: tuple[int, int, bytes | None]) -> bool:
    partition, offset, key = row
    if isinstance(target, OfKey):
        return key == target.key
    return partition == target.partition and target.start_offset <= offset < target.end_offset


def batch_of(rows: tuple[tuple[int, int, bytes | None], ...]) -> pa.RecordBatch:
    columns = {
        "partition": [row[0] for row in rows],
        "offset": [row[1] for row in rows],
        "timestamp": [0] * len(rows),
        "key": [row[2] for row in rows],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(values, RECORDS.field(name).type) for name, values in columns.items()], names=list(columns)
    )


@given(ACTS, st.randoms())
def test_the_latest_value_is_in_force(acts: list[tuple[MetadataTarget, str, str | None, int]], order: Random) -> None:
    entries = entries_of(acts)
    order.shuffle(entries)
    assert {(entry.target, entry.name): entry.value for entry in current(entries)} == model(acts)


@given(ACTS, st.sampled_from(NAMES), st.sampled_from(sorted(COMPARISONS)), st.sampled_from(VALUES), st.booleans())
def test_a_condition_finds_the_records_with_a_value(
    acts: list[tuple[MetadataTarget, str, str | None, int]], name: str, comparison: str, value: str, is_negated: bool
) -> None:
    text = f"{'not ' if is_negated else ''}(meta['{name}'] {comparison} '{value}')"
    where = with_metadata(Where.parse(text), entries_of(acts))
    matches = COMPARISONS[comparison]
    targets = [
        target
        for (target, named), present in model(acts).items()
        if named == name and matches(present.encode(), value.encode())
    ]
    expected = [any(is_of(target, row) for target in targets) is not is_negated for row in ROWS]
    assert where.rows(batch_of(ROWS)).tolist() == expected
    for partition in (0, 1):  # bounds rule out no record that matches
        bounds = where.bounds(partition)
        for row, matched in zip(ROWS, expected, strict=True):
            if matched and row[0] == partition:
                assert bounds is not None
                assert bounds.low_offset <= row[1] <= bounds.high_offset


CONDITIONS = st.recursive(
    st.builds(lambda key: f"key = 0x{key.hex()}", st.sampled_from(KEYS))
    | st.builds(lambda key: f"key starts with 0x{key.hex()}", st.sampled_from(KEYS))
    | st.sampled_from(["offset < 3", "partition = 1", "key is null"]),
    lambda parts: (
        st.builds("({} and {})".format, parts, parts)
        | st.builds("({} or {})".format, parts, parts)
        | st.builds("not ({})".format, parts)
    ),
    max_leaves=6,
)


@given(CONDITIONS, st.sampled_from(KEYS))
def test_a_named_key_is_in_every_match(text: str, key: bytes) -> None:
    where = Where.parse(text)
    rows = tuple((partition, offset, key) for partition in (0, 1) for offset in (0, 5))
    if names_key(where.condition, key):
        assert where.rows(batch_of(rows)).all()
