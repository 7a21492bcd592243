"""Fewer copies of a table's metadata, the same commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Transaction
from pyiceberg.table import update as updates

from catalog.iceberg.append import prepare
from catalog.model import new_id
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, change, span


def of_one_making(attempt: Any) -> Any:
    def clean(value: Any) -> Any:
        match value:
            case dict():
                varying = ("snapshot-id", "timestamp-ms", "manifest-list", "last-updated-ms", "archiver.head")
                return {key: clean(item) for key, item in value.items() if key not in varying}
            case list():
                return [clean(item) for item in value]
            case _:
                return value

    return [clean(item.model_dump(by_alias=True, mode="json")) for item in (*attempt.updates, *attempt.requirements)]


def test_it_sends_what_pyicebergs_own_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = MemoryCatalog(tmp_path)
    for start in range(0, 30, 10):
        catalog.apply(prepare(catalog.load(), [span(0, start, start + 10)], change=None, commit_id=new_id()))
    table, ranges, commit_id = catalog.load(), [span(0, 30, 40), span(1, 0, 5, with_file=False)], new_id()
    wider = change(ID, NOTE, version=2)
    before = table.iceberg.metadata.model_dump_json()

    copies = []
    original = updates.update_table_metadata

    def counted(*given: Any, **named: Any) -> Any:
        copies.append(given)
        return original(*given, **named)

    monkeypatch.setattr("pyiceberg.table.update_table_metadata", counted)
    light = prepare(table, ranges, change=wider, commit_id=commit_id)
    light_copies = len(copies)
    theirs = prepare(table, ranges, change=wider, commit_id=commit_id, begin=Transaction)

    assert of_one_making(light) == of_one_making(theirs)
    assert light_copies <= 5 < len(copies) - light_copies
    assert table.iceberg.metadata.model_dump_json() == before


def test_an_append_whose_columns_stay_copies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = MemoryCatalog(tmp_path)
    catalog.apply(prepare(catalog.load(), [span(0, 0, 10)], change=None, commit_id=new_id()))
    table, ranges, commit_id = catalog.load(), [span(0, 10, 20)], new_id()
    before = table.iceberg.metadata.model_dump_json()
    theirs = prepare(table, ranges, change=None, commit_id=commit_id, begin=Transaction)

    monkeypatch.setattr("pyiceberg.table.update_table_metadata", pytest.fail)
    light = prepare(table, ranges, change=None, commit_id=commit_id)

    assert of_one_making(light) == of_one_making(theirs)
    assert table.iceberg.metadata.model_dump_json() == before
