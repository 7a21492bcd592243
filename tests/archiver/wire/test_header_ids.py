"""Header schema ids, by Confluent's rules."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from archiver.wire.columns import RECORDS
from archiver.wire.header_ids import VALUE_HEADER, has_header_id, header_ids

NAMES = (VALUE_HEADER, VALUE_HEADER, b"__key_schema_id", b"__value_schema_iD", b"", b"trace", VALUE_HEADER + b"x")
KEYS = (*NAMES, b"apicurio.value.globalId", b"apicurio.value", b"apicurio.key.globalId")


def column(rows: list[list[tuple[bytes, bytes | None]]]) -> pa.ListArray:
    lists = [[{"key": key, "value": value} for key, value in row] for row in rows]
    return pa.array(lists, RECORDS.field("headers").type)


def last(row: list[tuple[bytes, bytes | None]]) -> bytes | None:
    return next((value for key, value in reversed(row) if key == VALUE_HEADER), None)


@pytest.mark.parametrize("seed", range(20))
def test_against_reading_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        [(draw.choice(KEYS), draw.choice((None, b"", draw.randbytes(18)))) for _ in range(draw.randrange(4))]
        for _ in range(draw.choice((1, 50, 300)))
    ]
    first, end = sorted((draw.randrange(len(rows) + 1), draw.randrange(len(rows) + 1)))
    headers, chosen = column(rows).slice(first, end - first), rows[first:end]
    ids = header_ids(headers, VALUE_HEADER)
    expected = {at: value for at, row in enumerate(chosen) if (value := last(row)) is not None}
    assert (dict(zip(ids.rows.tolist(), ids.values.to_pylist(), strict=True)) if ids else {}) == expected
    foreign = {at for at, row in enumerate(chosen) if any(key.startswith(b"apicurio.value.") for key, _ in row)}
    assert has_header_id(headers, VALUE_HEADER).tolist() == [
        at in expected or at in foreign for at in range(len(chosen))
    ]


def test_no_headers_at_all() -> None:
    assert header_ids(column([]), VALUE_HEADER) is None
    assert header_ids(column([[], []]), VALUE_HEADER) is None
    assert header_ids(column([[(VALUE_HEADER, None)]]), VALUE_HEADER) is None
