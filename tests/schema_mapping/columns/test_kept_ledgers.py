"""Ledgers from before named formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schema_mapping import LedgerEntry, LedgerState, assign
from schema_mapping.columns.ledger import ColumnState, SchemaVersion
from schema_mapping.columns.paths import read_path, stored_path
from schema_mapping.columns.types import read_type
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.row import row_mapping_from_text

KEPT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors/ledgers/of_protobuf.json").read_text())


def state_of(kept: dict[str, Any]) -> LedgerState:
    return LedgerState(
        entries=tuple(
            LedgerEntry(
                **{
                    **value,
                    "path": read_path(value["path"]),
                    "type": read_type(value["type"]),
                    "state": ColumnState(value["state"]),
                }
            )
            for value in kept["entries"]
        ),
        versions=tuple(SchemaVersion(**value) for value in kept["versions"]),
        last_id=kept["last_id"],
    )


def test_there_are_ledgers_of_one_message_and_of_several() -> None:
    assert {name: (len(value["entries"]), len(value["versions"])) for name, value in KEPT.items()} == {
        "one_message": (34, 3),
        "several_messages": (13, 3),
    }


@pytest.mark.parametrize("name", KEPT)
def test_entries_are_kept_as_they_were(name: str) -> None:
    for kept, entry in zip(KEPT[name]["entries"], state_of(KEPT[name]).entries, strict=True):
        assert (stored_path(entry.path), str(entry.type)) == (kept["path"], kept["type"])


@pytest.mark.parametrize("name", KEPT)
def test_mappings_say_the_same_words(name: str) -> None:
    for version in KEPT[name]["versions"]:
        assert row_mapping_from_text(version["mapping"]).text == version["mapping"]


@pytest.mark.parametrize("name", KEPT)
def test_the_newest_schema_changes_nothing(name: str) -> None:
    state = state_of(KEPT[name])
    row = row_mapping_from_text(state.versions[-1].mapping)
    again = assign(state, key=row.key_schema, value=row.value_schema, options=row.options)
    assert again.state == state
    assert again.fingerprint == state.versions[-1].fingerprint


@pytest.mark.parametrize("name", KEPT)
def test_the_ledger_follows_from_its_mappings(name: str) -> None:
    state = state_of(KEPT[name])
    result = rebuild_ledger(row_mapping_from_text(version.mapping) for version in state.versions)
    assert replace(result, entries=tuple(replace(entry, doc=None) for entry in result.entries)) == state
