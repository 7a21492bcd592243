"""Values as JSON: bytes in base64, decimals as text, times as ISO 8601.

A union's value is under its branch's name.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from schema_mapping import names
from schema_mapping.avro.program import form_texts
from schema_mapping.value_format import SHOWN_FIELDS

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def shown_values(messages: Sequence[str], values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
    """`messages` are the writers' type names."""
    shown = _shown(messages, values, rows)
    return pa.array(shown, pa.struct([pa.field(name, pa.string()) for name in SHOWN_FIELDS]))


def _shown(
    messages: Sequence[str], values: pa.BinaryArray, rows: pa.StructArray
) -> Iterator[tuple[str | None, str | None, str | None] | None]:
    writers = {form: index // 2 for index, form in enumerate(form_texts(len(messages)))}
    for value, row in zip(values.to_pylist(), rows.to_pylist(maps_as_pydicts=None), strict=True):
        if value is None or row is None:
            yield None
        elif row[names.ERR] is not None:
            yield None, None, f"not decoded: {row[names.ERR]}"
        else:
            columns = {name: plain(part) for name, part in row.items() if name not in names.RESERVED}
            yield messages[writers.get(row[names.FORM] or "", 0)], _encode(columns), None


def plain(value: Any) -> Any:  # noqa: PLR0911 - a table of types
    match value:
        case dict():
            return {name: plain(part) for name, part in value.items() if name != names.UNRECOGNIZED or part is not None}
        case [tuple(), *_]:  # the entries of a map
            return {key: plain(part) for key, part in value}
        case list():
            return [plain(part) for part in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case Decimal() | UUID():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value
