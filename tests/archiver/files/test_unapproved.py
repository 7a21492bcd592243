"""Values that only fit a waiting schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from archiver.errors import ParseHalted, UnrecognizedHalted
from archiver.files.recognition import UNAPPROVED_SCHEMA, Recognizer
from archiver.files.translate import Translator
from archiver.files.unapproved import WaitingMapping
from archiver.wire.columns import RECORDS
from schema_mapping import RowMapping, assign
from schema_mapping.columns.ledger import LedgerState
from tests.support.kafka.fetched_records import PLAIN, as_records
from tests.support.schemas.proto_text import compile_text, descriptor_of

HEAD = 'syntax = "proto3"; package t; '
FIELDS = "string name = 2; In one = 3; repeated In many = 4;"
BEFORE = f"{HEAD} message M {{ int64 total = 1; {FIELDS} }} message In {{ int32 a = 1; }}"
AFTER = f"{HEAD} message M {{ string total = 1; {FIELDS} }} message In {{ string a = 1; }}"
FOREIGN = HEAD + "message M { string name = 2; bytes other = 9; }"


def value_of(text: str, **fields: Any) -> bytes:
    message: Any = GetMessageClass(descriptor_of(text))
    return bytes(message(**fields).SerializeToString(deterministic=True))


VALUES = {
    "old": value_of(BEFORE, total=7, name="a", many=[{"a": 1}]),
    "new": value_of(AFTER, total="12.50", name="b"),
    "nested": value_of(AFTER, name="c", many=[{"a": "x"}]),
    "both": value_of(AFTER, name="d"),
    "foreign": value_of(FOREIGN, name="e", other=b"?"),
    "broken": b"\x12\x7fz",
    "null": None,
}


@pytest.fixture(scope="module")
def rows() -> tuple[RowMapping, RowMapping]:
    first = assign(LedgerState(), value=compile_text(BEFORE), key=compile_text(BEFORE))
    second = assign(first.state, value=compile_text(AFTER), key=compile_text(AFTER))
    return first.row, second.row


def translate(
    row: RowMapping, waiting: RowMapping | None, names: list[str] | None = None, **options: Any
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    how = {"on_parse_error": "pass_through", **options}
    change = None if waiting is None else WaitingMapping(row=waiting)
    translator = Translator(row, topic="t", partition=0, waiting=change, **how)
    first = PLAIN | {"batch_start": 10, "batch_end": 30}
    sent = [VALUES[name] for name in names or VALUES]
    records = [first | {"offset": 10 + at, "key": value, "value": value} for at, value in enumerate(sent)]
    (done,) = translator.translate(as_records(pa.RecordBatch.from_pylist(records, RECORDS)))
    return done.rows, done.records


def test_only_values_that_fit_the_change_are_kept_raw(rows: tuple[RowMapping, RowMapping]) -> None:
    in_force, waiting = rows
    plain, _ = translate(in_force, None)
    marked, records = translate(in_force, waiting)
    for part in ("key", "val"):
        before, after = plain.column(part).to_pylist(), marked.column(part).to_pylist()
        for name, old, new in zip(VALUES, before, after, strict=True):
            if name in {"new", "nested"}:
                kept = {column for column, value in new.items() if value not in (None, [])}
                assert kept == {"__raw__", "__err__"}
                assert (new["__raw__"], new["__err__"]) == (VALUES[name], UNAPPROVED_SCHEMA)
            else:
                assert new == old
    assert set(marked.column("kafka").field("schema_version").to_pylist()) == {1}
    counted = Recognizer(in_force).count(marked, records)
    assert (counted.value.unapproved, counted.value.failed, counted.value.unknown) == (2, 1, 1)
    mapping = in_force.value
    assert mapping.encode(marked.column("val")).to_pylist() == list(VALUES.values())


def test_waiting_values_stop_no_topic(rows: tuple[RowMapping, RowMapping]) -> None:
    in_force, waiting = rows
    halting = {"on_parse_error": "halt", "on_unrecognized": "halt"}
    translate(in_force, waiting, ["old", "new", "nested", "null"], **halting)
    with pytest.raises(ParseHalted) as failed:
        translate(in_force, waiting, ["new", "broken"], **halting)
    assert failed.value.context["offset"] == 11
    with pytest.raises(UnrecognizedHalted) as unknown:
        translate(in_force, waiting, ["new", "foreign"], **halting)
    assert unknown.value.context["offset"] == 11
