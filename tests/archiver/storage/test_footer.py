"""Footers of unusual files."""

from __future__ import annotations

import json

import pytest

from archiver.errors import BadSegment
from archiver.storage.footer import footer_of, read_footer
from archiver.storage.segment import SegmentLayout, SegmentMetadata, SegmentOrigin

ORIGIN = SegmentOrigin(cluster_id="c", topic="orders", topic_id="", partition=1, start_offset=5, end_offset=9)
DIGEST = "0" * 31 + "1"


def told(layout: SegmentLayout, origin: SegmentOrigin | None, **changed: str) -> SegmentMetadata:
    pairs = footer_of(layout, origin, DIGEST) | changed
    return read_footer({name.encode(): text.encode() for name, text in pairs.items()}, rows=4, path="file:///f")


def layout(**more: object) -> SegmentLayout:
    return SegmentLayout(schema=None, mapping='{"of": 3}', schema_version=3, **more)  # type: ignore[arg-type]


def test_every_mapping_is_there_by_version() -> None:
    footer = told(layout(other_mappings={1: '{"of":1}', 2: '{"of": 2}'}), ORIGIN)
    assert footer.origin == ORIGIN
    assert {version: json.loads(text) for version, text in footer.mappings.items()} == {
        1: {"of": 1},
        2: {"of": 2},
        3: {"of": 3},
    }


def test_one_mapping_takes_no_more_room_than_before() -> None:
    assert "archiver.other-mappings" not in footer_of(layout(), ORIGIN, DIGEST)
    assert told(layout(), ORIGIN).mappings == {3: '{"of": 3}'}


def test_a_file_without_an_origin_still_has_mappings_and_digest() -> None:
    footer = told(layout(other_mappings={1: '{"of":1}'}), None)
    assert (footer.origin, footer.format_version, footer.digest) == (None, None, DIGEST)
    assert set(footer.mappings) == {1, 3}


@pytest.mark.parametrize("text", ["[]", "{", '{"x": 1}'])
def test_damage_is_named(text: str) -> None:
    with pytest.raises(BadSegment):
        told(layout(), ORIGIN, **{"archiver.other-mappings": text})


def test_the_largest_record_is_named() -> None:
    pairs = footer_of(layout(), ORIGIN, DIGEST, largest_record=12_582_912)
    kept = {key.encode(): value.encode() for key, value in pairs.items()}
    assert read_footer(kept, rows=1, path="x").largest_record == 12_582_912
    assert told(layout(), ORIGIN).largest_record is None
