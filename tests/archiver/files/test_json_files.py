"""A task with JSON values."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.ingest.task.work import translate_range
from archiver.schemas.json.settings import read_json_schema
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from schema_mapping import LedgerState, assign
from schema_mapping.row import row_mapping_from_json
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

SCHEMA = {
    "title": "Click",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "at": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
        "source": {"type": ["string", "integer", "null"]},
        "open": {},
    },
}


def test_file_gives_every_byte_of_json_back(tmp_path: Path) -> None:
    path = tmp_path / "click.schema.json"
    path.write_text(json.dumps(SCHEMA))
    row = assign(LedgerState(), value=read_json_schema((path,))).row
    clicks = [
        {"price": n / 4, "id": n, "tags": ["a", None], "labels": {"x": n}, "at": {"y": 0.5}, "source": None, "more": n}
        for n in range(400)
    ]
    values: list[bytes | None] = [json.dumps(click).encode() for click in clicks]
    values[7:10] = b"no JSON", None, b'{"id":1,"price":1.50}'
    log = [batch(base, *(Record(value=value) for value in values[base : base + 100])) for base in range(0, 400, 100)]
    result = translate_range(Bench(folder=tmp_path, source=LogInMemory(log=log), row=row).task(0, 400))
    assert result.error is None
    (done,) = result.ranges
    assert done.file is not None
    assert done.file.raw_values == 2
    with ParquetFormat().open(ObjectStore.of({}), done.file.path) as reader:
        (text,) = reader.metadata.mappings.values()
    kept = row_mapping_from_json(json.loads(text))
    assert kept == row
    column = pa.concat_arrays(pq.read_table(done.file.path.removeprefix("file://")).column("val").chunks)
    assert kept.value.encode(column.cast(kept.value.arrow_type)).to_pylist() == values
    assert column[3].as_py()["__unrecognized__"] == b'{"more": 3}'
