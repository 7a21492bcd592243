"""A returned schema: columns at once, names later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from schema_mapping import Assignment, LedgerState, MappingOptions, assign
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.row import row_mapping_from_text
from tests.support.schemas.assigned_columns import changed, columns, row_columns
from tests.support.schemas.proto_text import fields

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Topic:
    def __init__(self, **options: bool) -> None:
        self.state = LedgerState()
        self.minute = 0
        self._options = MappingOptions(**options)

    def ask(self, body: str, minutes: int = 1) -> Assignment:
        self.minute += minutes
        result = assign(self.state, value=fields(body), options=self._options, now=START + self.minute * MINUTE)
        self.state = result.state
        return result

    def stay(self, body: str) -> Assignment:
        for minutes in (1, 30):
            assert self.ask(body, minutes).changes == ()
        return self.ask(body, 30)


INT, TEXT = "int32 x = 1;", "string x = 1;"


def test_a_return_that_lasts_gives_the_plain_name_back() -> None:
    topic = Topic()
    first, second = topic.ask(INT), topic.ask(TEXT)
    old, new = columns(first.iceberg_schema)["x"], columns(second.iceberg_schema)["x"]
    third = topic.stay(INT)
    assert (third.version, third.row.schema_version, third.fingerprint) == (3, 3, first.fingerprint)
    assert columns(third.iceberg_schema) == {"x": old, f"x_deleted_{new[0]}": new}
    assert row_columns(third) == {"x": old[0]}
    assert changed(third) == [
        ("renamed", "val.x"),
        ("restored", "val.x"),
        ("renamed", f"val.x_deleted_{new[0]}"),
    ]
    assert topic.ask(INT) == replace(third, changes=(), is_new=False)
    assert columns(topic.stay(TEXT).iceberg_schema) == {"x": new, f"x_deleted_{old[0]}": old}


@pytest.mark.parametrize("keep_removed", [True, False])
def test_schemas_that_take_turns_never_flap(keep_removed: bool) -> None:
    topic = Topic(keep_removed=keep_removed)
    first, second = topic.ask(INT), topic.ask(TEXT)
    for _ in range(200):
        assert (topic.ask(INT, 20).row, topic.ask(INT, 20).changes) == (first.row, ())
        assert topic.ask(INT, 19).version == 1
        again = topic.ask(TEXT)
        assert (again.row, again.version, again.changes) == (second.row, 2, ())
    assert topic.state == second.state


def test_neither_time_nor_asking_alone_makes_a_return() -> None:
    topic = Topic()
    topic.ask(INT)
    topic.ask(TEXT)
    for _ in range(50):
        assert topic.ask(INT).version == 1
    topic.ask(TEXT)
    assert [topic.ask(INT, 10_000).version for _ in range(3)] == [1, 1, 3]


def test_two_older_schemas_that_take_turns_are_none_that_stays() -> None:
    topic = Topic()
    for body in (INT, TEXT, "bytes x = 1;"):
        topic.ask(body)
    for _ in range(5):
        assert (topic.ask(INT, 100).version, topic.ask(TEXT, 100).version) == (1, 2)


def test_column_written_again_is_in_the_table_at_once() -> None:
    topic = Topic(keep_removed=False)
    body = "int32 a = 1; N n = 2; repeated N m = 3;"
    nested = "message N { int32 x = 1; int32 y = 2; }"
    first = topic.ask(f"{body} {nested}")
    second = topic.ask("int32 a = 1; repeated N m = 3; message N { int32 x = 1; }")
    written = set(first.row.column_ids)
    assert not written <= second.iceberg_schema.field_ids
    third = topic.ask(f"{body} {nested}")
    assert (third.version, third.state.entries) == (1, second.state.entries)
    assert written <= third.iceberg_schema.field_ids
    assert third.row == first.row


def test_lasting_return_drops_columns_without_keep_removed() -> None:
    topic = Topic(keep_removed=False)
    first = topic.ask(INT)
    topic.ask(TEXT)
    assert set(columns(topic.ask(INT).iceberg_schema)) == {"x", f"x_deleted_{row_columns(first)['x']}"}
    assert columns(topic.stay(INT).iceberg_schema) == columns(first.iceberg_schema)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("int32 x = 1;", "int64 x = 1;"),
        ("repeated float x = 1;", "repeated double x = 1;"),
        ("map<int32, int32> x = 1;", "map<int32, int64> x = 1;"),
    ],
)
def test_a_column_that_was_widened_meanwhile_is_taken_as_it_is(narrow: str, wide: str) -> None:
    topic = Topic()
    first, second = topic.ask(f"{narrow} int32 other = 2;"), topic.ask(wide)
    third = topic.stay(f"{narrow} int32 other = 2;")
    assert [change.kind for change in third.changes] == [ChangeKind.RESTORED]
    assert columns(third.iceberg_schema) == columns(second.iceberg_schema)
    assert third.row.arrow_schema.equals(first.row.arrow_schema, check_metadata=True)
    assert third.state.last_id == second.state.last_id


def test_a_return_that_would_change_nothing_makes_no_version() -> None:
    topic = Topic()
    topic.ask("int32 a = 1;")
    topic.ask("optional int32 a = 1;")
    assert [topic.ask("int32 a = 1;", 50).version for _ in range(9)] == [1] * 9
    assert len(topic.state.versions) == 2


def test_a_field_renamed_and_back() -> None:
    topic = Topic()
    topic.ask("int32 a = 1;")
    topic.ask("int32 b = 1;")
    assert changed(topic.stay("int32 a = 1;")) == [("renamed", "val.a")]


def test_an_option_taken_back_counts_when_it_has_lasted() -> None:
    body = "int32 a = 1;"
    topic, state = Topic(), LedgerState()
    topic.ask("int32 a = 1; int32 b = 2;")
    kept, dropping = MappingOptions(), MappingOptions(keep_removed=False)
    topic.ask(body)
    state = assign(topic.state, value=fields(body), options=dropping).state
    for hours in range(3):
        result = assign(state, value=fields(body), options=kept, now=START + timedelta(hours=hours))
        state = result.state
    assert [change.kind for change in result.changes] == [ChangeKind.KEPT]
    assert set(columns(result.iceberg_schema)) == {"a", "b"}


def test_a_ledger_with_returns_can_be_learned_from_its_mappings() -> None:
    topic = Topic()
    wide = "int64 x = 1; string y = 2;"
    topic.ask("int32 x = 1;")
    topic.ask(wide)
    topic.stay("int32 x = 1;")
    topic.ask("string x = 1; bytes z = 3;")
    topic.stay(wide)
    assert len(topic.state.versions) == 5
    again = rebuild_ledger(row_mapping_from_text(version.mapping) for version in topic.state.versions)
    assert again == topic.state


def test_a_new_schema_begins_the_count_anew() -> None:
    topic = Topic()
    for body in (INT, TEXT):
        topic.ask(body)
    topic.ask(INT, 40)
    topic.ask(INT, 40)
    topic.ask("bytes x = 1;")
    assert [topic.ask(INT, 40).version for _ in range(3)] == [1, 1, 4]
