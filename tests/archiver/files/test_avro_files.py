"""A task with Avro values."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from archiver.ingest.task.work import translate_range
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from schema_mapping import LedgerState, assign
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.row import row_mapping_from_json
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record
from tests.support.schemas.strategies_avro import written

TRADER = "0dd0e0a0-8be9-4c7f-8e9f-aa7dbe5a60f2"
COUNT = 1_500


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "day", "type": logical("int", "date")},
    {"name": "at", "type": logical("int", "time-millis")},
    {"name": "placed", "type": logical("long", "timestamp-millis")},
    {"name": "local", "type": ["null", logical("long", "local-timestamp-micros")]},
    {"name": "price", "type": logical("bytes", "decimal", precision=9, scale=2)},
    {"name": "trader", "type": logical("string", "uuid")},
    {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
    {"name": "tag", "type": {"type": "fixed", "name": "Tag", "size": 3}},
    {"name": "notes", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "legs", "type": {"type": "map", "values": ["null", "double"]}},
    {"name": "source", "type": ["string", "null", "int", {"type": "record", "name": "Desk", "fields": []}]},
    {"name": "parent", "type": ["null", "Trade"]},
]
TRADE: dict[str, Any] = {"type": "record", "name": "Trade", "fields": FIELDS}


def trade(number: int) -> dict[str, Any]:
    source: Any = [("string", f"s{number}"), None, ("int", number), ("Desk", {})][number % 4]
    return {
        "id": number,
        "day": 19_700 + number,
        "at": 1_000 * number,
        "placed": 1_700_000_000_000 + number,
        "local": number if number % 3 else None,
        "price": Decimal(number).scaleb(-2),
        "trader": TRADER,
        "side": "BUY" if number % 2 else "SELL",
        "tag": b"%03d" % (number % 1000),
        "notes": ["a", None, f"n{number}"][: number % 4],
        "legs": {"x": None, "y": float(number)} if number % 2 else {},
        "source": source,
        "parent": {**trade(0), "id": number} if number % 50 == 1 else None,
    }


def test_file_has_all_types_and_gives_every_byte_back(tmp_path: Path) -> None:
    row = assign(LedgerState(), value=AvroSchema.of(json.dumps(TRADE))).row
    values: list[bytes | None] = [written(TRADE, trade(number)) for number in range(COUNT)]
    values[7:9] = b"no trade", None
    log = [batch(base, *(Record(value=value) for value in values[base : base + 100])) for base in range(0, COUNT, 100)]
    result = translate_range(Bench(folder=tmp_path, source=LogInMemory(log=log), row=row).task(0, COUNT))
    assert result.error is None
    (done,) = result.ranges
    assert done.file is not None
    assert done.file.raw_values == 1
    with ParquetFormat().open(ObjectStore.of({}), done.file.path) as reader:
        (text,) = reader.metadata.mappings.values()
    kept = row_mapping_from_json(json.loads(text))
    assert kept == row
    table = pq.read_table(done.file.path.removeprefix("file://"))
    column = pa.concat_arrays(table.column("val").chunks)
    assert kept.value.encode(column.cast(kept.value.arrow_type)).to_pylist() == values
    third = column[3].as_py()
    assert (third["day"], third["price"], third["trader"]) == (date(2023, 12, 12), Decimal("0.03"), UUID(TRADER))
    assert third["placed"] == datetime(2023, 11, 14, 22, 13, 20, 3_000, tzinfo=UTC)
    assert third["notes"] == ["a", None, "n3"]
    assert third["source"]["Desk"] is not None
    assert column.type.field("local").type == pa.timestamp("us")


def test_values_are_shown_as_json() -> None:
    mapping = assign(LedgerState(), value=AvroSchema.of(json.dumps(TRADE))).row.value
    values = pa.array([written(TRADE, trade(3)), b"no trade", None])
    rows = mapping.decode(values, which=np.zeros(3, np.int16))
    shown, failed, nothing = mapping.shown(values, rows).to_pylist()  # type: ignore[attr-defined]
    assert shown["type"] == "Trade"
    assert json.loads(shown["json"]) == {
        "id": 3,
        "day": "2023-12-12",
        "at": "00:00:03",
        "placed": "2023-11-14T22:13:20.003000+00:00",
        "local": None,
        "price": "0.03",
        "trader": TRADER,
        "side": "BUY",
        "tag": "MDAz",
        "notes": ["a", None, "n3"],
        "legs": {"x": None, "y": 3.0},
        "source": {"string": None, "int": None, "Desk": {}},
        "parent": None,
    }
    assert failed["reason"].startswith("not decoded: ")
    assert nothing is None
