"""Messages with well-known types."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf.descriptor import Descriptor

from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of

FILES = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
HEAD = 'syntax = "proto3"; package t; ' + " ".join(f'import "google/protobuf/{name}.proto";' for name in FILES)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
YEAR_ONE = -62_135_596_800
YEAR_9999_ENDS = 253_402_300_799


def message(body: str) -> Descriptor:
    return descriptor_of(f"{HEAD} message M {{ {body} }}")


def types_of(mapping: MessageMapping) -> dict[str, str]:
    return {field.name: str(field.field_type) for field in mapping.iceberg_type.fields if field.name[:2] != "__"}


def decoded(mapping: MessageMapping, *values: Any) -> list[dict[str, Any]]:
    data = pa.array([value.SerializeToString() for value in values], pa.binary())
    rows = mapping.decode(data)
    rows.validate(full=True)
    assert rows.field("__err__").null_count == len(rows)
    assert mapping.encode(rows).equals(data)
    pylist: list[dict[str, Any]] = rows.to_pylist()
    return pylist


def through_parquet(mapping: MessageMapping, data: pa.Array, folder: Path) -> pa.StructArray:
    rows = mapping.decode(data)
    assert rows.field("__raw__").null_count == len(rows)
    pq.write_table(pa.table({"val": rows}), folder / "rows.parquet")
    back = pq.read_table(folder / "rows.parquet")["val"].combine_chunks()
    assert mapping.encode(back).equals(data)
    assert mapping.encode(back.slice(7, 9)).equals(data.slice(7, 9))
    return back
