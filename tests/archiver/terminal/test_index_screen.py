"""The screen of an index names what keeps it from being whole."""

from __future__ import annotations

from archiver.terminal.index_screen import status_json, status_screen
from archiver.upkeep.indexing import ColumnIndex, TopicIndexes

KEYS = ColumnIndex(name="key", kind="terms", runs=2, levels=1, entries=30, size_bytes=1_200, files=2, all_files=3)


def test_too_large_files_are_named_with_the_command() -> None:
    indexes = TopicIndexes(topic="orders", columns=(KEYS,), too_large=1)
    text = status_screen(indexes).plain
    assert "orders: key (terms); 2 of 3 files" in text
    assert "orders: 1 file took longer than `archiver archive` had time: `archiver index build`" in text
    assert status_json(indexes)["files_too_large"] == 1
    assert "took longer" not in status_screen(TopicIndexes(topic="orders", columns=(KEYS,))).plain
