"""Fit of a schema, beside Protobuf's parser."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from archiver.errors import UnrecognizedHalted
from archiver.files.recognition import Recognizer
from archiver.files.records import Records
from archiver.files.translate import Translator
from archiver.wire.columns import RECORDS
from catalog.recognition import Doubt, Fit, Recognition
from schema_mapping import RawMapping, RowMapping, compile_mapping
from tests.support.kafka.fetched_records import PLAIN, as_records
from tests.support.schemas.proto_text import descriptor_of

HEAD = "syntax = 'proto3'; package t; "
ITEM = "message M { string id = 1; In one = 3; repeated In many = 4; map<string, In> by = 5; M self = 6;"
OLD = f"{HEAD}{ITEM} }} message In {{ int32 a = 1; }}"
NEW = f"{HEAD}{ITEM} string extra = 100; }} message In {{ int32 a = 1; string b = 2; }}"
HIDING = """syntax = "proto3"; package t; import "archiver/options.proto";
message M { string id = 1; bytes blob = 2 [(archiver.column).exclude = true]; }"""


@pytest.fixture(scope="module")
def old() -> Descriptor:
    return descriptor_of(OLD)


@pytest.fixture(scope="module")
def new() -> Any:
    return GetMessageClass(descriptor_of(NEW))


@pytest.fixture(scope="module")
def row(old: Descriptor) -> RowMapping:
    return RowMapping(key=RawMapping(raw_id=9_000), value=compile_mapping(old), schema_version=1)


def decoded(row: RowMapping, values: list[bytes | None]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    sent = {"key": pa.nulls(len(values), pa.binary()), "value": pa.array(values, pa.binary())}
    records = pa.RecordBatch.from_pydict(sent)
    columns = [row.key.decode(records.column("key")), row.value.decode(records.column("value"))]
    return pa.RecordBatch.from_arrays(columns, ["key", "val"]), records


@pytest.fixture(scope="module")
def values(new: Any) -> dict[str, bytes | None]:
    def one(**fields: Any) -> bytes:
        return bytes(new(**fields).SerializeToString(deterministic=True))

    return {
        "known": one(id="a", many=[{"a": 1}, {"a": 2}]),
        "top": one(id="b", extra="zz"),
        "blank": one(extra="only"),
        "null": None,
        "below": one(one={"a": 1, "b": "q"}),
        "in a list": one(many=[{"a": 1}, {"a": 2, "b": "r"}]),
        "in a map": one(by={"k": {"a": 1, "b": "zz"}}),
        "cut": one(self={"id": "q"}),
        "empty": b"",
        "broken": b"\x0a\xff",
        "not canonical": b"\x0a\x00",
    }


UNKNOWN = ("top", "blank", "below", "in a list", "in a map")


def test_what_a_schema_does_not_know_is_found_at_any_depth(row: RowMapping, values: dict[str, bytes | None]) -> None:
    rows, records = decoded(row, list(values.values()))
    recognizer = Recognizer(row)
    result = recognizer.unknown(rows.column("val"), "val")
    assert result is not None
    assert [name for name, is_unknown in zip(values, result, strict=True) if is_unknown] == list(UNKNOWN)
    whole = sum(len(value) for value in values.values() if value)
    assert recognizer.count(rows, records) == Recognition(
        value=Fit(values=10, size_bytes=whole, failed=1, raw=2, unknown=5, unknown_bytes=5 + 7 + 3 + 3 + 4, blank=1)
    )


@pytest.mark.parametrize("start", range(11))
def test_slices_count_as_their_own_rows_do(row: RowMapping, values: dict[str, bytes | None], start: int) -> None:
    rows, records = decoded(row, list(values.values()))
    recognizer = Recognizer(row)
    split = recognizer.count(rows.slice(0, start), records.slice(0, start)) + recognizer.count(
        rows.slice(start), records.slice(start)
    )
    assert split == recognizer.count(rows, records)


def test_raw_keys_and_values_are_not_counted() -> None:
    raw = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)
    assert Recognizer(raw).count(*decoded(raw, [b"x", None])) == Recognition()


def test_excluded_fields_are_known() -> None:
    hiding = descriptor_of(HIDING)
    row = RowMapping(key=RawMapping(raw_id=9_000), value=compile_mapping(hiding), schema_version=1)
    result = Recognizer(row).count(*decoded(row, [GetMessageClass(hiding)(id="a", blob=b"zz").SerializeToString()]))
    assert (result.value.values, result.value.unknown) == (1, 0)


def test_unknown_fields_halt_only_outside_excluded_ones() -> None:
    """As docs/configuration.md says about `on_unrecognized`."""
    hiding = descriptor_of(HIDING.replace("id = 1;", "id = 1; In one = 3;") + "message In { int32 a = 1; }")
    row = RowMapping(key=RawMapping(raw_id=9_000), value=compile_mapping(hiding), schema_version=1)
    beside, below = b"\x0a\x01a\x48\x01", b"\x1a\x02\x48\x01"
    rows, records = decoded(row, [beside, below])
    assert rows.column("val").field("__unrecognized__").to_pylist() == [b"\x48\x01", None]
    assert Recognizer(row).count(rows, records).value.unknown == 1
    halting = translator(row, "halt")
    values = {"beside": beside, "below": below}
    halting.translate(sent(values, "beside"))
    with pytest.raises(UnrecognizedHalted):
        halting.translate(sent(values, "below"))


def translator(row: RowMapping, on_unrecognized: Any) -> Translator:
    return Translator(row, topic="t", partition=7, on_parse_error="pass_through", on_unrecognized=on_unrecognized)


FIRST = PLAIN | {"key": None, "batch_start": 10, "batch_end": 20}


def sent(values: dict[str, bytes | None], *names: str) -> Records:
    rows = [FIRST | {"offset": 10 + number, "value": values[name]} for number, name in enumerate(names)]
    return as_records(pa.RecordBatch.from_pylist(rows, RECORDS))


def test_a_topic_that_asks_to_halt_names_the_first_record(row: RowMapping, values: dict[str, bytes | None]) -> None:
    halting = translator(row, "halt")
    halting.translate(sent(values, "known", "cut", "broken"))
    with pytest.raises(UnrecognizedHalted) as caught:
        halting.translate(sent(values, "known", "null", "in a list", "top"))
    assert caught.value.context == {"topic": "t", "partition": 7, "offset": 12}


@pytest.mark.parametrize(
    ("fit", "doubt"),
    [
        (Fit(), None),
        (Fit(values=4, failed=2, unknown=2, blank=2), None),
        (Fit(values=4, unknown=3), Doubt.UNKNOWN),
        (Fit(values=4, unknown=4, blank=3), Doubt.BLANK),
        (Fit(values=4, failed=3, unknown=1), Doubt.FAILED),
    ],
)
def test_a_majority_is_doubted(fit: Fit, doubt: Doubt | None) -> None:
    assert fit.doubt is doubt


def test_json_leaves_out_zeros_and_newer_counts() -> None:
    recognition = Recognition(value=Fit(values=3, unknown=1))
    assert recognition.to_json() == {"value": {"values": 3, "unknown": 1}}
    assert Recognition.from_json({"value": {"values": 3, "unknown": 1, "later": 9}}) == recognition
