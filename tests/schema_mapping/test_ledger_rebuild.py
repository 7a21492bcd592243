"""A ledger rebuilt from mappings equals the original one."""

from __future__ import annotations

import pytest

from schema_mapping.columns.ledger import LedgerState
from schema_mapping.errors import EvolutionError
from schema_mapping.field_ids import assign
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.row import RowMapping
from tests.support.schemas.proto_text import fields

STEPS = (
    "int32 a = 1; string b = 2;",
    "int64 a = 1; string renamed = 2; repeated int32 more = 3;",
    "string a = 1; map<string, int32> by = 4;",
    "int64 a = 1; string b = 2;",
    "int32 a = 1; string b = 2; bytes last = 9;",
)


def history(*, table_grows: int = 0) -> tuple[LedgerState, list[RowMapping]]:
    state, rows = LedgerState(), []
    for body in STEPS:
        result = assign(state.at_least(state.last_id + table_grows), key=fields("int32 k = 1;"), value=fields(body))
        state = result.state
        rows.append(result.row)
    return state, rows


@pytest.mark.parametrize("table_grows", [0, 7])
def test_it_is_the_same_ledger(table_grows: int) -> None:
    state, rows = history(table_grows=table_grows)
    again = rebuild_ledger(reversed(rows))
    assert again.entries == state.entries
    assert again.versions == state.versions
    assert again.last_id == state.last_id


def test_raw_topics_have_one_too() -> None:
    result = assign(LedgerState())
    assert rebuild_ledger([result.row]) == result.state


def test_a_version_that_changed_nothing_may_be_missing() -> None:
    first = assign(LedgerState(), value=fields("int32 a = 1;"))
    same = assign(first.state, value=fields("optional int32 a = 1;"))
    last = assign(same.state, value=fields("int32 a = 1; int32 b = 2;"))
    again = rebuild_ledger([first.row, last.row])
    assert again.entries == last.state.entries
    assert [version.version for version in again.versions] == [1, 2, 3]


def test_columns_of_a_missing_version_are_never_assigned_again() -> None:
    state, rows = history()
    again = rebuild_ledger([rows[0], *rows[2:]])
    assert again.last_id == state.last_id
    assert {entry.field_id for entry in again.entries} < {entry.field_id for entry in state.entries}


def test_mappings_of_different_ledgers_are_refused() -> None:
    _, rows = history()
    stranger = assign(LedgerState().at_least(500), value=fields(STEPS[0])).state
    foreign = assign(stranger, key=fields("int32 k = 1;"), value=fields(STEPS[1])).row
    with pytest.raises(EvolutionError, match="journal"):
        rebuild_ledger([rows[0], foreign])
