"""A reprocessing never loses columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from archiver.files.translate import Translator
from archiver.upkeep.reprocess.job import lossy_versions_of
from archiver.upkeep.reprocess.redecode import Decoding, RedecodedRows, Redecoder
from archiver.upkeep.reprocess.row_filter import Reach, RowFilter
from archiver.upkeep.wide_schema import wide_schema
from archiver.wire.columns import RECORDS
from schema_mapping import Assignment, LedgerState, assign
from tests.support.kafka.fetched_records import PLAIN, as_records
from tests.support.schemas.proto_text import descriptor_of, fields

RECORD = PLAIN | {"batch_start": 0, "batch_end": 99}
BROKEN = b"\x0a\xff"
NO_TEXT = b"\x0a\x01\xff"


def message(text: str, **held: Any) -> bytes:
    made = GetMessageClass(descriptor_of(f"message M {{ {text} }}"))(**held)
    return bytes(made.SerializeToString(deterministic=True))


def again(
    then: Assignment,
    now: Assignment,
    reach: Reach,
    *records: tuple[bytes | None, bytes | None],
    raw_versions: Mapping[str, frozenset[int]] | None = None,
    lossy_versions: Mapping[str, frozenset[int]] | None = None,
) -> RedecodedRows:
    sent = pa.RecordBatch.from_pylist(
        [RECORD | {"offset": at, "key": key, "value": value} for at, (key, value) in enumerate(records)], RECORDS
    )
    translator = Translator(then.row, topic="t", partition=0, on_parse_error="pass_through")
    (translated,) = translator.translate(as_records(sent))
    rows = translated.rows
    names = {field_id: now.iceberg_schema.find_field(field_id).name for field_id in now.iceberg_schema.field_ids}
    schema = wide_schema(now.row.arrow_schema, rows.schema, names)
    decoding = Decoding(row=now.row, raw_versions=raw_versions or {}, lossy_versions=lossy_versions or {})
    redecoder = Redecoder(decoding, RowFilter(reach=reach), file=rows.schema, schema=schema)
    (mended,) = redecoder.pieces(rows, rows.column("kafka"), sent)
    return mended


def test_rows_keep_columns_when_the_topic_is_raw_now() -> None:
    then = assign(LedgerState(), value=fields("string id = 1;"))
    now = assign(then.state)
    sent = ((None, message("string id = 1;", id="a")), (None, None), (None, BROKEN))
    kept, empty, broken = again(then, now, Reach.ALL, *sent).rows.to_pylist()
    assert (kept["val"]["id"], kept["val"]["__raw__"], kept["kafka"]["schema_version"]) == ("a", None, then.version)
    assert (empty["val"], empty["kafka"]["schema_version"]) == (None, now.version)
    assert (broken["val"]["__raw__"], broken["kafka"]["schema_version"]) == (BROKEN, now.version)


def test_rows_that_were_raw_and_are_raw_today_go_along() -> None:
    then = assign(LedgerState(), key=fields("string name = 1;"))
    now = assign(then.state, key=fields("bytes name = 1;"))
    raw = {"val": frozenset({then.version, now.version})}
    (row,) = again(then, now, Reach.ERRORS, (NO_TEXT, b"any"), raw_versions=raw).rows.to_pylist()
    assert (row["key"]["__err__"], row["val"]["__raw__"], row["kafka"]["schema_version"]) == (None, b"any", now.version)


@pytest.mark.parametrize("reach", Reach)
def test_mended_key_takes_no_columns_from_a_raw_value(reach: Reach) -> None:
    then = assign(LedgerState(), key=fields("string name = 1;"), value=fields("string id = 1;"))
    now = assign(then.state, key=fields("bytes name = 1;"))
    sent = ((NO_TEXT, message("string id = 1;", id="a")), (NO_TEXT, None))
    kept, lone = again(then, now, reach, *sent).rows.to_pylist()
    assert (kept["val"] and kept["val"]["id"], kept["kafka"]["schema_version"]) == ("a", then.version)
    assert (lone["key"]["__err__"], lone["kafka"]["schema_version"]) == (None, now.version)


@pytest.mark.parametrize("reach", Reach)
def test_a_column_is_not_given_for_another_one(reach: Reach) -> None:
    """Today's schema knows the larger field, which had no column, and not the smaller one, which had."""
    then = assign(LedgerState(), key=fields("string name = 1;"), value=fields("string a = 1;"))
    now = assign(then.state, key=fields("bytes name = 1;"), value=fields("string b = 2;"))
    both = "string a = 1; string b = 2;"
    sent = ((NO_TEXT, message(both, a="kept", b="x" * 20)), (NO_TEXT, message(both, b="x" * 20)))
    mended = again(then, now, reach, *sent, lossy_versions=lossy_versions_of(now))
    kept, taken = mended.rows.to_pylist()
    assert (kept["val"]["a"], kept["val"]["b"], kept["kafka"]["schema_version"]) == ("kept", None, then.version)
    assert (taken["val"]["b"], taken["kafka"]["schema_version"]) == ("x" * 20, now.version)


def test_versions_lacking_a_column_are_lossy_by_part() -> None:
    first = assign(LedgerState(), value=fields("string a = 1;"))
    second = assign(first.state, key=fields("int32 k = 1;"), value=fields("string a = 1; M m = 2;"))
    third = assign(second.state, key=fields("int64 k = 1; string more = 2;"), value=fields("string renamed = 1;"))
    versions = (first.version, second.version, third.version)
    assert len(set(versions)) == 3
    assert lossy_versions_of(third) == {"key": frozenset(), "val": frozenset({second.version})}
