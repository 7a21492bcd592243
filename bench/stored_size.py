"""Stored bytes of orders, compared with plain Parquet and Kafka's log.

The orders of bench/data.py, by the job's writer, with and without `encodings = "plain"` (CPU time: median and least),
and by pyarrow, with zstd level 3 and its defaults. Kafka's log is the size of its record batches, compressed as by
bench/data.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from data import Order, message_type, orders
from rich.console import Console
from rich.table import Table

from archiver.codecs import Codec
from archiver.files.records import Batches
from archiver.files.translate import Translator
from archiver.ingest.kafka_log.grouping import records_of
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.wire import RECORDS, encode_batches
from schema_mapping import names
from schema_mapping.field_ids import LedgerState, assign
from schema_mapping.protobuf.descriptors import closure
from schema_mapping.row import RowMapping

PARTITIONS = 4
BATCH_BYTES = 1 << 20
GROUP_ROWS = 64 << 10
OF_OURS = (names.RAW, names.ERR, names.PREFIX, names.UNRECOGNIZED)


def one_partition(count: int) -> pa.RecordBatch:
    kept = [order for order in orders(count) if zlib.crc32(order.key) % PARTITIONS == 0]
    starts, size = [0], 0
    for row, record in enumerate(kept):
        size += _wire_bytes(record)
        if size > BATCH_BYTES:
            starts.append(row)
            size = _wire_bytes(record)
    bounds = np.append(starts, len(kept))
    places = np.repeat(np.arange(len(starts)), np.diff(bounds))
    constant = {"timestamp_type": 0, "leader_epoch": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    columns: dict[str, Any] = {
        "offset": np.arange(len(kept)),
        "timestamp": [record.timestamp for record in kept],
        "key": [record.key for record in kept],
        "value": [record.value for record in kept],
        "headers": [[{"key": name.encode(), "value": text} for name, text in record.headers] for record in kept],
        "batch_start": bounds[:-1][places],
        "batch_end": bounds[1:][places] - 1,
        "append_timestamp": [None] * len(kept),
        "attributes": np.full(len(kept), int(Codec.ZSTD)),
        **{name: np.full(len(kept), value) for name, value in constant.items()},
    }
    arrays = [pa.array(columns[field.name], field.type) for field in RECORDS]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def _wire_bytes(order: Order) -> int:
    return 20 + len(order.key) + len(order.value) + sum(len(name) + len(text) for name, text in order.headers)


def row_mapping() -> RowMapping:
    return assign(LedgerState(), value=closure(message_type())).row


def translated(records: pa.RecordBatch, row: RowMapping) -> list[pa.RecordBatch]:
    translator = Translator(row, topic="orders", partition=0, on_parse_error="halt")
    rows = []
    for start in range(0, records.num_rows, GROUP_ROWS):
        part = records.slice(start, GROUP_ROWS)
        starts, first, counts = np.unique(part.column("batch_start").to_numpy(), return_index=True, return_counts=True)
        batches = Batches(
            first_offset=starts,
            last_offset=part.column("batch_end").to_numpy()[first],
            rows=counts,
            times=np.maximum.accumulate(part.column("timestamp").to_numpy()[first]),
        )
        group = records_of(part, batches, start_offset=int(starts[0]))
        rows += [translated.rows for translated in translator.translate(group)]
    return rows


def ours(rows: list[pa.RecordBatch], row: RowMapping, path: Path, level: int, *, is_plain: bool = False) -> float:
    path.unlink(missing_ok=True)
    started = time.process_time()
    layout = replace(SegmentLayout.of_mapping(row, {}), plain_encodings=is_plain)
    writer = ParquetFormat(compression_level=level).start(SpoolFile.create(path), layout)
    for batch in rows:
        writer.write(batch)
    origin = SegmentOrigin(cluster_id="c", topic="orders", topic_id="", partition=0, start_offset=0, end_offset=1 << 40)
    writer.close(origin=origin, path=path.name)
    return time.process_time() - started


def plain(rows: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(rows).combine_chunks()
    value = table.column(names.VAL).combine_chunks()
    headers = table.column(names.HEADERS).combine_chunks()
    kafka = table.column(names.KAFKA).combine_chunks()
    pairs = without_ours(headers.values, ("__raw_key__",))
    return pa.table(
        {
            "key": pc.struct_field(table.column(names.KEY), names.RAW).combine_chunks(),
            "value": without_ours(value, OF_OURS),
            "headers": pa.ListArray.from_arrays(headers.offsets, pairs),
            "partition": pc.struct_field(kafka, names.PARTITION),
            "offset": pc.struct_field(kafka, names.OFFSET),
            "timestamp": pc.struct_field(kafka, names.EVENT_TIMESTAMP),
        }
    )


def without_ours(column: pa.Array, left_out: tuple[str, ...]) -> pa.Array:
    if pa.types.is_struct(column.type):
        kept = [field.name for field in column.type if field.name not in left_out]
        if not kept:
            return pa.nulls(len(column), pa.int8())
        fields = [without_ours(pc.struct_field(column, name), left_out) for name in kept]
        return pa.StructArray.from_arrays(fields, kept)
    if pa.types.is_map(column.type):
        return pa.MapArray.from_arrays(column.offsets, column.keys, without_ours(column.items, left_out))
    if pa.types.is_list(column.type):
        return pa.ListArray.from_arrays(column.offsets, without_ours(column.values, left_out))
    return column


def column_sizes(path: Path) -> list[tuple[str, int, str]]:
    sizes: dict[str, int] = {}
    how: dict[str, set[str]] = {}
    metadata = pq.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            sizes[column.path_in_schema] = sizes.get(column.path_in_schema, 0) + column.total_compressed_size
            how.setdefault(column.path_in_schema, set()).update(column.encodings)
    return sorted(
        ((name, size, " ".join(sorted(how[name]))) for name, size in sizes.items()), key=lambda entry: -entry[1]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Stored size")
    parser.add_argument("--records", type=int, default=200_000, help="orders, of which a quarter is in the partition")
    parser.add_argument("--level", type=int, default=ParquetFormat().compression_level, help="of our file's zstd")
    parser.add_argument("--turns", type=int, default=7, help="how often each encoding is written")
    parser.add_argument("--columns", action="store_true", help="list the dearest columns of ours and of the plain file")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    options = parser.parse_args()
    records, row = one_partition(options.records), row_mapping()
    rows = translated(records, row)
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("archiver", "archiver, encodings plain", "pyarrow, zstd 3", "pyarrow, defaults")
        paths = {name: Path(folder) / f"{name}.parquet" for name in kinds}
        seconds: dict[str, list[float]] = {kinds[0]: [], kinds[1]: []}
        for turn in range(options.turns):
            for name in (kinds[:2], kinds[1::-1])[turn % 2]:
                spent = ours(rows, row, paths[name], options.level, is_plain=name == kinds[1])
                seconds[name].append(spent * 1e6 / records.num_rows)
        table = plain(rows)
        pq.write_table(table, paths["pyarrow, zstd 3"], compression="zstd", compression_level=3)
        pq.write_table(table, paths["pyarrow, defaults"])
        sizes = {name: path.stat().st_size for name, path in paths.items()}
        sizes["Kafka's log, zstd"] = len(encode_batches(records).data)
        listed = {name: column_sizes(path) for name, path in paths.items()}
    show(sizes, records.num_rows)
    for name, spent in seconds.items():
        print(f"{name}: {median(spent):.2f} µs of CPU a row ({min(spent):.2f} the least of {options.turns} turns)")
    if options.columns:
        for name in ("archiver", "pyarrow, zstd 3"):
            print(name)
            for column, size, encodings in listed[name][:25]:
                print(f"{size / records.num_rows:8.2f} {column}  {encodings}")
    if options.json:
        numbers = {"records": records.num_rows, "bytes": sizes, "cpu_us_a_row": seconds}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


def show(sizes: dict[str, int], records: int) -> None:
    table = Table(title=f"{records:,} orders of one partition")
    for heading in ("", "bytes", "a record", "ours / theirs"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, size in sizes.items():
        table.add_row(name, f"{size:,}", f"{size / records:.1f}", f"{sizes['archiver'] / size:.3f}")
    Console(width=None if Console().is_terminal else 120).print(table)


if __name__ == "__main__":
    main()
