"""What people and machines see of metadata."""

from __future__ import annotations

import pytest

from archiver.find.query import octets_of
from archiver.terminal.metadata_screen import changed_lines, entry_json, entry_line, key_text
from catalog.record_metadata import OfOffsets
from tests.support.archive.metadata_entries import entry_of

SET = entry_of(OfOffsets(3, 10, 12), "case", "12", seconds=1)
DELETED = entry_of(b"jane", "case", None)


def test_an_entry_is_a_line() -> None:
    assert entry_line(SET) == "3:10-11 case=12, 2026-01-01T00:00:01.000000Z by jane on host"
    assert entry_line(DELETED) == "key jane: case deleted, 2026-01-01T00:00:00.000000Z by jane on host"


def test_json_has_every_part() -> None:
    common = {"name": "case", "author": "jane on host"}
    of_offsets = {"partition": 3, "first": 10, "last": 11, "time": "2026-01-01T00:00:01.000000Z"}
    assert entry_json(SET) == common | of_offsets | {"id": SET.id, "value": "12", "deleted": False}
    of_key = {"key": "jane", "time": "2026-01-01T00:00:00.000000Z"}
    assert entry_json(DELETED) == common | of_key | {"id": DELETED.id, "value": None, "deleted": True}


@pytest.mark.parametrize("key", [b"", b"jane", b"0x00", b"\xff\x00", "é".encode(), b"a\x1b[31m"])
def test_a_shown_key_is_the_option_s(key: bytes) -> None:
    assert octets_of(key_text(key)) == key
    assert key_text(key).isprintable()


def test_a_change_without_a_journal_says_so() -> None:
    (line, warning) = changed_lines([SET], is_journaled=False, dry_run=False)
    assert line == "3:10-11 case=12 set"
    assert "no journal" in warning
    assert list(changed_lines([DELETED], is_journaled=False, dry_run=True)) == [
        "key jane: case deleted; nothing was changed"
    ]
