"""Rows as ingest writes them, and verdicts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from archiver.files.translate import Translator
from archiver.records.column_answers import answer
from archiver.records.table_columns import table_columns
from archiver.records.where import Where
from archiver.upkeep.removal.conditions import Matching, judge
from archiver.wire.columns import RECORDS
from schema_mapping import Assignment, LedgerState, assign
from tests.support.archive.archived_rows import KnownMapping
from tests.support.kafka.fetched_records import PLAIN, as_records

RECORD = PLAIN | {"batch_start": 0, "batch_end": 99}


def text(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2, len(value))) + value


def rows_of(written: Assignment, *values: bytes | None, keys: bool = False) -> pa.RecordBatch:
    part = "key" if keys else "value"
    sent = pa.RecordBatch.from_pylist(
        [RECORD | {"key": None, "value": None, "offset": at, part: value} for at, value in enumerate(values)], RECORDS
    )
    translator = Translator(written.row, topic="t", partition=0, on_parse_error="pass_through")
    (translated,) = translator.translate(as_records(sent))
    return translated.rows


def said(condition: str, now: Assignment, rows: pa.RecordBatch, *versions: Assignment) -> tuple[list[int], list[int]]:
    (column,) = table_columns(Where.parse(condition), now.iceberg_schema, now.state).values()
    result = answer(column, rows, KnownMapping(*(version.row for version in (now, *versions))))
    return np.flatnonzero(result.holds).tolist(), np.flatnonzero(result.unknown).tolist()


def gone(condition: str, now: Assignment, rows: pa.RecordBatch, *versions: Assignment) -> tuple[list[int], list[int]]:
    records = pa.RecordBatch.from_pydict(
        {"partition": np.zeros(rows.num_rows, np.int32), "offset": np.arange(rows.num_rows)}
    )
    where = Where.parse(condition)
    columns = table_columns(where, now.iceberg_schema, now.state)
    mapping = KnownMapping(*(version.row for version in (now, *versions)))
    verdict = judge(Matching(where, {0: rows.num_rows}, columns), rows, records, mapping)
    assert verdict.unjudged is not None
    return np.flatnonzero(verdict.going).tolist(), np.flatnonzero(verdict.unjudged).tolist()


def union_rows(written: Assignment, *values: tuple[str, bytes]) -> pa.RecordBatch:
    mapping = written.row.value
    which = np.array([mapping.messages.index(name) for name, _ in values], np.int16)
    decoded = mapping.decode(pa.array([value for _, value in values], pa.binary()), which=which)
    bare = assign(LedgerState())
    plain = rows_of(bare, *(value for _, value in values))
    kafka = plain.column("kafka")
    version = pa.array([written.row.schema_version] * len(values), pa.int32())
    parts = [version if field.name == "schema_version" else kafka.field(field.name) for field in kafka.type]
    kafka = pa.StructArray.from_arrays(parts, fields=list(kafka.type))
    columns = {"val": decoded, "kafka": kafka}
    schema = written.row.arrow_schema
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(len(values), field.type)) for field in schema],
        schema=pa.schema([field.with_nullable(nullable=True) for field in schema]),
    )
