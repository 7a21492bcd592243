"""Conditions on metadata: their syntax, what replaces them, and their limit."""

from __future__ import annotations

import pyarrow as pa
import pytest

from archiver.errors import ConfigError
from archiver.records.metadata_terms import MOST_TERMS, NOTHING, with_metadata
from archiver.records.where import Where
from archiver.records.where_syntax import AllOf, AnyOf, BytesAre, MetaIs, NumberIs
from catalog.record_metadata import OfOffsets
from tests.support.archive.metadata_entries import entry_of


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("meta['case'] = '12'", MetaIs("case", b"12")),
        ('META["case"] exists', MetaIs("case")),
        ("meta['case'] starts with 'a'", MetaIs("case", b"a", "starts with")),
        ("meta['case'] in ('a', 'b')", AnyOf((MetaIs("case", b"a"), MetaIs("case", b"b")))),
    ],
)
def test_the_syntax_is_as_for_headers(text: str, condition: object) -> None:
    assert Where.parse(text).condition == condition


@pytest.mark.parametrize("text", ["meta.case = '1'", "meta['case']", "meta['case'] = 12", "meta['a'] is null"])
def test_a_mistake_is_named_with_its_position(text: str) -> None:
    with pytest.raises(ConfigError, match="at character"):
        Where.parse(text)


def test_keys_and_joined_offsets_replace_it() -> None:
    entries = [
        entry_of(b"k", "case", "12"),
        entry_of(OfOffsets(1, 0, 5), "case", "12"),
        entry_of(OfOffsets(1, 5, 7), "case", "12"),
        entry_of(OfOffsets(1, 90, 99), "case", "13"),
        entry_of(OfOffsets(1, 50, 59), "other", "12"),
    ]
    where = with_metadata(Where.parse("meta['case'] = '12'"), entries)
    offsets = AllOf((NumberIs("partition", "=", 1), NumberIs("offset", ">=", 0), NumberIs("offset", "<", 7)))
    assert where.condition == AnyOf((BytesAre("key", "=", b"k"), offsets))
    assert where.text == "meta['case'] = '12'"
    assert not where.metadata_names


def test_without_such_metadata_nothing_matches() -> None:
    where = with_metadata(Where.parse("meta['case'] exists"), [entry_of(b"k", "case", None)])
    assert where.condition == NOTHING
    assert where.bounds(0) is None


def test_names_are_those_of_the_whole_condition() -> None:
    where = Where.parse("not meta['a'] exists or (key = 'k' and meta['b'] = '1')")
    assert where.metadata_names == {"a", "b"}


def test_too_many_keys_are_refused() -> None:
    entries = [entry_of(b"%d" % number, "case", "1") for number in range(MOST_TERMS + 1)]
    with pytest.raises(ConfigError, match="too many keys") as caught:
        with_metadata(Where.parse("meta['case'] = '1'"), entries)
    assert caught.value.context["keys"] == MOST_TERMS + 1


def test_records_are_never_judged_without_metadata() -> None:
    records = pa.RecordBatch.from_pydict({"offset": pa.array([1], pa.int64())})
    with pytest.raises(ConfigError, match="can't be used here"):
        Where.parse("meta['case'] = '1'").rows(records)
