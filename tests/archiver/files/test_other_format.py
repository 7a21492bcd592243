"""A task with the tests' format."""

from __future__ import annotations

import json
import uuid
from datetime import date, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.ingest.task.work import translate_range
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from schema_mapping import LedgerState, assign
from schema_mapping.row import row_mapping_from_json
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record
from tests.support.schemas.fixed_width import FixedSchema, record

TRADE = FixedSchema.of(id="int", day="date", at="time", price="decimal(9, 2)", tag="fixed[3]", trader="uuid")
ENOUGH_FOR_ENCODINGS = 1_500


def trade(number: int) -> bytes:
    trader = uuid.uuid5(uuid.NAMESPACE_DNS, str(number))
    return record(TRADE, number, 19_700 + number, 1_000 * number, -number, b"%03d" % (number % 1000), trader.bytes)


def test_a_file_has_all_types_and_gives_every_byte_back(tmp_path: Path) -> None:
    row = assign(LedgerState(), value=TRADE).row
    values = [trade(number) for number in range(ENOUGH_FOR_ENCODINGS)]
    values[7:9] = b"no trade", None
    log = [batch(base, *(Record(value=value) for value in values[base : base + 100])) for base in range(0, 1_500, 100)]
    result = translate_range(Bench(folder=tmp_path, source=LogInMemory(log=log), row=row).task(0, 1_500))
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
    assert (third["day"], third["at"], third["price"]) == (date(2023, 12, 12), time(0, 0, 0, 3_000), Decimal("-0.03"))
    assert pa.types.is_fixed_size_binary(column.type.field("tag").type)
    assert column.type.field("trader").type == pa.uuid()
