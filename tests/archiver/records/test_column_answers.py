"""Which rows columns can judge."""

from __future__ import annotations

import operator
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from archiver.records.column_answers import compared
from archiver.records.table_columns import table_columns
from archiver.records.where import Where
from archiver.upkeep.removal.conditions import Matching, judge
from schema_mapping import LedgerState, MappingOptions, assign
from tests.support.archive.archived_rows import KnownMapping
from tests.support.archive.judged_rows import rows_of, said, text
from tests.support.schemas.proto_text import compile_text, fields

BROKEN = b"\x0a\xff"


NESTED = "message C { string id = 1; } message M { C c = 1; int32 n = 2; }"
WITH_C = assign(LedgerState(), value=compile_text(NESTED))


def test_a_nested_column_and_values_that_were_not_decoded() -> None:
    values = (text(1, text(1, b"x")), text(1, text(1, b"y")), text(1, b""), b"", None, BROKEN, b"\x10\x01")
    rows = rows_of(WITH_C, *values)
    assert said("val.c.id = 'x'", WITH_C, rows) == ([0], [5])
    assert said("val.c.id = ''", WITH_C, rows) == ([2], [5]), "a message that is there has its defaults"
    assert said("val.n = 1", WITH_C, rows) == ([6], [5])
    for start in range(rows.num_rows):
        some = rows.slice(start)
        assert said("val.c.id = 'x'", WITH_C, some) == ([0][start:], [5 - start] if start < 6 else [])


def test_a_value_that_is_kept_raw_is_judged_by_its_columns() -> None:
    twice = b"\x10\x01\x10\x02"
    rows = rows_of(WITH_C, twice)
    assert rows.column("val")[0]["__raw__"].as_py() == twice
    assert said("val.n = 1", WITH_C, rows) == ([], [])
    assert said("val.n = 2", WITH_C, rows) == ([0], [])


def test_keys_have_columns_too() -> None:
    table = assign(LedgerState(), key=fields("string id = 1;"))
    rows = rows_of(table, text(1, b"x"), BROKEN, None, text(1, b"y"), keys=True)
    assert said("key.id = 'x'", table, rows) == ([0], [1])


def test_versions_without_the_column_judge_only_known_fields() -> None:
    bare = assign(LedgerState(), value=fields("int32 n = 2;"))
    now = assign(bare.state, value=compile_text(NESTED))
    rows = rows_of(bare, b"\x10\x01", text(1, text(1, b"x")), None, BROKEN, text(9, b"z"))
    assert said("val.c.id = 'x'", now, rows, bare) == ([], [1, 3, 4])
    half = assign(LedgerState(), value=compile_text("message C { int32 k = 2; } message M { C c = 1; int32 n = 2; }"))
    now = assign(half.state, value=compile_text(NESTED.replace("id = 1;", "id = 1; int32 k = 2;")))
    rows = rows_of(half, text(1, text(1, b"x")), text(1, b"\x10\x01"), text(9, b"z"), b"\x10\x01")
    assert said("val.c.id = 'x'", now, rows, half) == ([], [0, 2])
    assert said("val.n = 1", now, rows, half) == ([3], []), "this version has the column"


def test_versions_without_a_schema_say_nothing() -> None:
    raw = assign(LedgerState())
    now = assign(raw.state, value=compile_text(NESTED))
    assert said("val.n = 1", now, rows_of(raw, b"\x10\x01", b"", None), raw) == ([], [0, 1])


def test_versions_take_turns_in_a_batch() -> None:
    raw = assign(LedgerState())
    now = assign(raw.state, value=compile_text(NESTED))
    new = rows_of(now, b"\x10\x01", b"\x10\x02")
    old = rows_of(raw, b"\x10\x01", None)
    value = pa.StructArray.from_arrays(
        [
            old.column("val").field("__raw__") if field.name == "__raw__" else pa.nulls(2, field.type)
            for field in new.schema.field("val").type
        ],
        fields=list(new.schema.field("val").type),
        mask=old.column("val").is_null(),
    )
    columns = [
        value if name == "val" else old.column(name).cast(new.schema.field(name).type) for name in new.schema.names
    ]
    mixed = pa.Table.from_batches([new, pa.RecordBatch.from_arrays(columns, schema=new.schema)]).combine_chunks()
    (batch,) = mixed.take([2, 0, 3, 1]).combine_chunks().to_batches()
    assert said("val.n = 1", now, batch, raw) == ([1], [0])


def test_former_column_of_a_field_leaves_rows_unjudged() -> None:
    first = assign(LedgerState(), value=fields("string id = 1;"))
    now = assign(first.state, value=fields("int64 id = 1;"))
    rows = rows_of(first, text(1, b"x"), BROKEN, None)
    assert said("val.id = 1", now, rows, first) == ([], [0, 1])
    old = next(entry.name for entry in now.state.entries if entry.name.startswith("id_deleted"))
    assert said(f"val.{old} = 'x'", now, rows, first) == ([0], [1])


def test_a_column_that_others_left_out_or_changed_says_nothing() -> None:
    rows = rows_of(WITH_C, b"\x10\x01", None, text(1, text(1, b"x")))
    value = rows.column("val")
    kept = [field for field in value.type if field.name != "n"]
    without = pa.StructArray.from_arrays([value.field(field.name) for field in kept], fields=kept, mask=value.is_null())
    schema = pa.schema([field.with_type(without.type) if field.name == "val" else field for field in rows.schema])
    columns = [without if name == "val" else rows.column(name) for name in rows.schema.names]
    assert said("val.n = 1", WITH_C, pa.RecordBatch.from_arrays(columns, schema=schema)) == ([], [0, 2])
    fields_ = [field.with_type(pa.list_(pa.int32())) if field.name == "n" else field for field in value.type]
    lists = [
        pa.array([[1], None, []], pa.list_(pa.int32())) if field.name == "n" else value.field(field.name)
        for field in value.type
    ]
    changed = pa.StructArray.from_arrays(lists, fields=fields_, mask=value.is_null())
    schema = pa.schema([field.with_type(changed.type) if field.name == "val" else field for field in rows.schema])
    columns = [changed if name == "val" else rows.column(name) for name in rows.schema.names]
    assert said("val.n = 1", WITH_C, pa.RecordBatch.from_arrays(columns, schema=schema)) == ([], [0, 2])


def test_matches_below_the_end_go_and_unjudged_are_named() -> None:
    rows = rows_of(WITH_C, b"\x10\x01", BROKEN, b"\x10\x02", b"\x10\x01", BROKEN)
    records = pa.RecordBatch.from_pydict(
        {"partition": pa.array([0] * 5, pa.int32()), "offset": pa.array([0, 1, 2, 3, 4], pa.int64())}
    )
    where = Where.parse("val.n = 1 and not offset = 0")
    columns = table_columns(where, WITH_C.iceberg_schema, WITH_C.state)
    for ends, going, unjudged in (({0: 5}, [3], [1, 4]), ({0: 3}, [], [1]), ({1: 5}, [], [])):
        verdict = judge(Matching(where, ends, columns), rows, records, KnownMapping(WITH_C.row))
        assert verdict.unjudged is not None
        assert np.flatnonzero(verdict.going).tolist() == going
        assert np.flatnonzero(verdict.unjudged).tolist() == unjudged


DAY = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        (pa.array(["x", None, "", "X"]), "x", [0]),
        (pa.array(["x", ""], pa.large_string()), "", [1]),
        (pa.array([b"\x00", None, b""]), b"", [2]),
        (pa.array([1, None, -1], pa.int32()), -1, [2]),
        (pa.array([1, None, -1], pa.int32()), 2**40, []),
        (pa.array([2**53, 2**53 + 1]), 2**53 + 1, [1]),
        (pa.array([0.1, None, float("nan"), 0.2], pa.float32()), 0.1, [0]),
        (pa.array([float("inf"), 1.0], pa.float32()), 1e300, []),
        (pa.array([0.1, 0.10000000149011612]), 0.1, [0]),
        (pa.array([-0.0, 0.0]), 0.0, [0, 1]),
        (pa.array([True, None, False]), False, [2]),
        (pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)), Decimal("1.5"), [0]),
        (pa.array([DAY, None], pa.timestamp("us", "UTC")), DAY, [0]),
        (pa.array([DAY, None], pa.timestamp("ns", "UTC")), DAY, [0]),
        (pa.array([DAY.date(), None]), date(2026, 1, 31), [0]),
        (pa.array([b"\x01" * 16, None], pa.binary(16)), b"\x01" * 16, [0]),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\x01" * 16, None], pa.binary(16))), b"\x01" * 16, [0]),
    ],
)  # fmt: skip
def test_values_are_equal(column: Any, value: Any, found: list[int]) -> None:
    assert [at for at, same in enumerate(compared(column, "=", value).to_pylist()) if same] == found
    above = {at for at, is_above in enumerate(compared(column, ">", value).to_pylist()) if is_above}
    below = {at for at, is_below in enumerate(compared(column, "<", value).to_pylist()) if is_below}
    unequal = {at for at, differs in enumerate(compared(column, "!=", value).to_pylist()) if differs}
    at_least = {at for at, holds in enumerate(compared(column, ">=", value).to_pylist()) if holds}
    values = column.to_pylist()
    assert {at for at, it in enumerate(values) if it is not None} == unequal | set(found)
    assert not unequal & set(found)
    assert unequal - {at for at, it in enumerate(values) if it != it} == above | below  # noqa: PLR0124 - NaN
    assert at_least == above | set(found)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_texts_compare_by_their_bytes(kind: pa.DataType) -> None:
    texts = ["", "a", "ab", "\uffff", "\U00010000", None, "zab"]
    column = pa.array([None if it is None else it.encode() for it in texts], pa.binary()).cast(kind)
    for value in ("", "a", "ab", "\uffff"):
        octets = value.encode()
        plain = octets if pa.types.is_binary(kind) else value
        for comparison, holds in MATCHING.items():
            answers = compared(column, comparison, plain).to_pylist()
            assert answers == [None if it is None else holds(it.encode(), octets) for it in texts], (comparison, value)


MATCHING: dict[Any, Any] = {
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "starts with": bytes.startswith,
    "ends with": bytes.endswith,
    "contains": bytes.__contains__,
}


def test_numbers_are_as_the_message_has_them() -> None:
    table = assign(
        LedgerState(),
        value=fields("uint64 big = 1; float f = 2; uint32 small = 3;"),
        options=MappingOptions(uint64="decimal"),
    )
    rows = rows_of(
        table, b"\x08" + b"\xff" * 9 + b"\x01", b"\x15" + struct.pack("<f", 0.1), b"\x18\xff\xff\xff\xff\x0f"
    )
    assert said("val.big = 18446744073709551615", table, rows) == ([0], [])
    assert said("val.f = 0.1", table, rows) == ([1], [])
    assert said("val.small = -1", table, rows) == ([2], []), "as the error says"
