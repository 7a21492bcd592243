"""Entries as JSON, and their digests."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from catalog.record_metadata import MetadataEntry, OfOffsets, current
from tests.support.archive.metadata_entries import START, entry_of

ENTRIES = (
    entry_of(b"\xff\x00", "case", "zwölf", seconds=1),
    entry_of(OfOffsets(3, 10, 12), "case", "", seconds=2),
    entry_of(OfOffsets(3, 10, 12), "case", None, seconds=3),
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_json_gives_an_entry_back(entry: MetadataEntry) -> None:
    assert MetadataEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_a_digest_depends_on_salt_and_content() -> None:
    entry = ENTRIES[0]
    changed = [
        replace(entry, salt="01" * 16),
        replace(entry, value="13"),
        replace(entry, name="Case"),
        replace(entry, target=OfOffsets(0, 0, 1)),
    ]
    assert len({entry.digest, *(changed_entry.digest for changed_entry in changed)}) == 5
    assert replace(entry, id="x", sequence=9, time=START).digest == entry.digest


def test_a_salt_is_not_shown() -> None:
    assert "0000" not in repr(replace(ENTRIES[1], id="x", sequence=1))


def test_of_one_time_the_highest_sequence_wins() -> None:
    first, second = entry_of(b"k", "case", "1", sequence=7), entry_of(b"k", "case", "2", sequence=8)
    assert current([second, first]) == (second,)


@pytest.mark.parametrize(
    ("spans", "meets"),
    [({3: [(0, 10)]}, False), ({3: [(11, 12)]}, True), ({3: [(12, 20)]}, False), ({2: [(10, 12)]}, False)],
)
def test_offsets_meet_spans(spans: dict[int, list[tuple[int, int]]], meets: bool) -> None:
    assert OfOffsets(3, 10, 12).meets(spans) is meets
