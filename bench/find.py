"""How much faster a search is than scans of the same table, and how many requests it takes.

Recipe: `python bench/find.py [--files 20] [--records 65536] [--lookups 40] [--latency 0.03]`. Orders are archived to
local files with bloom filters on keys, which are in random order, so bounds rule out nothing. A tenth of the
values that are looked up don't occur. Sides take turns: `find` (`archiver.find`, imports and table loaded),
`scan` (`archiver replay --where`, the whole topic), and DuckDB over the same files, which uses bloom filters, too.
`--latency` is waited for at each request of `find`. Results are medians; the ratio is the scan's time divided by
find's, by the clock and by CPU. Requests are opened files and reads of data files.

The same keys are looked up with an index of keys, in as many runs as a level has without a merge, and in one run.

Then two cities are looked up, which bounds rule out in no file: one order of one file has the first, no order the
second. Sides: hashes in the registry (a dictionary here), sets in the files alone, neither, and DuckDB.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from unittest.mock import PropertyMock, patch

sys.path.insert(0, str(Path(__file__).parent.parent))

import duckdb
import pyarrow as pa
from data import orders
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from values.orders import order_type

from archiver.find.query import FindQuery
from archiver.find.report import FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource
from archiver.index.builder import ENTRY_BYTES
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.export import Export
from archiver.storage.metered import ReadMeter
from archiver.storage.parquet.reader import ParquetSegmentReader
from archiver.storage.value_sets import ValueSets
from catalog.term_runs import FAN_OUT
from schema_mapping import Assignment, LedgerState, SourceSchema, assign
from tests.archiver.conftest import Archive
from tests.support.archive.lake import Lake, schema_of
from tests.support.archive.memory_index import LakeIndex
from tests.support.storage.filled_rows import rows_of

T = TypeVar("T")
USUAL, RARE, MISSING = b"Rotterdam", b"Marseille", b"Lisbon"
CITY = "val.customer.address.city"
TURNS = 7
ABSENT = 0.1
SCANS = 3


class SlowMeter(ReadMeter):
    """Waits at each request, as over a network."""

    latency = 0.0

    def count(self, size: int) -> None:
        if self.latency:
            time.sleep(self.latency)
        super().count(size)


@dataclass(frozen=True)
class SearchedTable:
    lake: Lake
    made: Assignment
    keys: list[bytes]
    paths: list[str]
    rare: int
    """The offset of the order that has the rare city."""

    def find(self, where: str, latency: float, index: LakeIndex | None = None) -> tuple[list[int], FindReport]:
        query = FindQuery.parse(where=where)
        meter, of_index = SlowMeter(), SlowMeter()
        meter.latency = of_index.latency = latency
        report = FindReport(reads=meter, index_reads=of_index)
        opens = self.lake.archive if index is None else index.archive
        source = FindSource.open(
            query, lambda bounded: opens(ledger=lambda *_: self.made.state, bounded=bounded), report
        )
        return _offsets(batch for _, batch in Search(query=query, sources=[source], report=report)), report

    def scan(self, where: str) -> list[int]:
        archive = self.lake.archive(ledger=lambda *_: self.made.state)
        return _offsets(Export(selected=SelectedRecords.of(archive, Selection.parse(where=where))).batches())

    def duckdb(self, column: str, value: bytes | str) -> list[int]:
        sql = f"SELECT kafka.offset, key, val, headers FROM read_parquet(?) WHERE {column} = ?"  # noqa: S608
        return [row[0] for row in duckdb.execute(sql, [self.paths, value]).fetchall()]


def _offsets(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def table_of(folder: Path, files: int, records: int) -> SearchedTable:
    file = FileDescriptorProto()
    order_type().file.CopyToProto(file)
    source = SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="shop.Order")
    made = assign(LedgerState(), value=source)
    lake = Lake(folder, made.row)
    lake.bloom_filters = {schema_of(made.row).find_field("key.__raw__").field_id: 0.01}
    keys = [b"order-%09d" % number for number in range(files * records)]
    random.Random(1).shuffle(keys)
    archive = Archive(rows=made.row)
    values = [order.value for order in orders(records)]
    decoded = made.row.value.decode(pa.array(values, pa.binary()))
    chosen = next(number for number, value in enumerate(values) if USUAL in value)
    values[chosen] = values[chosen].replace(USUAL, RARE)
    with_rare = made.row.value.decode(pa.array(values, pa.binary()))
    rare = files // 2 * records + chosen
    for start in range(0, files * records, records):
        rows = rows_of(archive, records, start=start)
        kafka = rows.column("kafka")
        parts = {field.name: kafka.field(field.name) for field in kafka.type} | {
            "partition": pa.array([0] * records, "int32")
        }
        key = pa.StructArray.from_arrays(
            [
                pa.array(keys[start : start + records]) if field.name == "__raw__" else pa.nulls(records, field.type)
                for field in rows.schema.field("key").type
            ],
            fields=list(rows.schema.field("key").type),
        )
        columns = {
            "key": key,
            "val": with_rare if start <= rare < start + records else decoded,
            "kafka": pa.StructArray.from_arrays([*parts.values()], fields=list(kafka.type)),
        }
        batch = pa.RecordBatch.from_arrays(
            [columns.get(name, rows.column(name)) for name in rows.schema.names], schema=rows.schema
        )
        lake.add(made.row, batch, start, start + records)
    return SearchedTable(lake, made, keys, [it.file_path.removeprefix("file://") for it in lake.files()], rare)


def compare_sets(table: SearchedTable, latency: float) -> None:
    """Sides take turns: hashes in the registry, sets in the files, and neither."""
    kept = table.lake.values
    no_sets = patch.object(ParquetSegmentReader, "value_sets", new_callable=PropertyMock, return_value=ValueSets())
    sides = {
        "hashes in the registry": (kept, nullcontext()),
        "sets in files": ({}, nullcontext()),
        "neither": ({}, no_sets),
    }
    for city, expected in ((RARE, [table.rare]), (MISSING, [])):
        where = f"{CITY} = '{city.decode()}'"
        times: dict[str, list[tuple[float, float]]] = {side: [] for side in (*sides, "DuckDB")}
        reports: dict[str, FindReport] = {}
        for _ in range(TURNS):
            for side, (values, patched) in sides.items():
                table.lake.values = dict(values)
                with patched:
                    seconds, (matches, reports[side]) = timed(partial(table.find, where, latency))
                assert matches == expected, (side, matches)
                times[side].append(seconds)
            seconds, matches = timed(partial(table.duckdb, CITY, city.decode()))
            assert matches == expected
            times["DuckDB"].append(seconds)
        table.lake.values = kept
        print(f"{where}: {len(expected)} orders")
        for side, took in times.items():
            reads = reports[side].reads if side in reports else None
            read = f", {reads.requests:,} requests, {reads.size_bytes:,} bytes" if reads else ""
            print(f"  {side}: {_median(took, 0) * 1000:,.1f} ms, {_median(took, 1) * 1000:,.1f} ms of CPU{read}")


def compare_index(table: SearchedTable, folder: Path, lookups: int, latency: float) -> None:
    for runs in (FAN_OUT - 1, 1):
        entries = len(table.keys) // runs
        index = LakeIndex(table.lake, folder / f"index-{runs}", "key", memory=entries * ENTRY_BYTES)
        seconds, built = timed(lambda index=index: index.build(ledger=lambda *_: table.made.state))  # type: ignore[misc]
        millions = len(table.keys) / 1e6
        print(
            f"index, runs: {runs}; {seconds[1] / millions:,.2f} s of CPU for a million keys,"
            f" {built.size_bytes / len(table.keys):,.1f} bytes a key"
        )
        draw = random.Random(2)
        for is_there in (True, False):
            times, requests, sizes = [], [], []
            for _ in range(lookups):
                key = draw.choice(table.keys) + (b"" if is_there else b"x")
                seconds, (matches, report) = timed(partial(table.find, f"key = '{key.decode()}'", latency, index))
                assert matches == ([table.keys.index(key)] if is_there else []), (key, matches)
                times.append(seconds)
                requests.append(report.reads.requests + report.index_reads.requests)
                sizes.append(report.reads.size_bytes + report.index_reads.size_bytes)
            print(
                f"  {'a' if is_there else 'an absent'} key: {_median(times, 0) * 1000:,.0f} ms,"
                f" {_median(times, 1) * 1000:,.0f} ms of CPU, {statistics.median(requests):,.0f} requests,"
                f" {statistics.median(sizes):,.0f} bytes"
            )


def timed(call: Callable[[], T]) -> tuple[tuple[float, float], T]:
    """Return seconds and CPU seconds of a call, and its result."""
    started, used = time.perf_counter(), time.process_time()
    result = call()
    return (time.perf_counter() - started, time.process_time() - used), result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--files", type=int, default=20)
    arguments.add_argument("--records", type=int, default=65_536, help="in each file")
    arguments.add_argument("--lookups", type=int, default=40)
    arguments.add_argument("--latency", type=float, default=0.0, help="seconds for each request of find")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = table_of(Path(folder), chosen.files, chosen.records)
        size = sum(Path(path).stat().st_size for path in table.paths)
        print(f"{len(table.keys):,} orders in {chosen.files} files, {size / 1e6:,.0f} MB")
        draw = random.Random(2)
        finds, scans, peers, requests, sizes = [], [], [], ([], []), []
        for number in range(chosen.lookups):
            is_there = draw.random() >= ABSENT
            key = draw.choice(table.keys) + (b"" if is_there else b"x")
            expected = [table.keys.index(key)] if is_there else []
            where = f"key = '{key.decode()}'"
            seconds, (matches, report) = timed(partial(table.find, where, chosen.latency))
            assert matches == expected, (key, matches)
            finds.append(seconds)
            requests[is_there].append(report.reads.requests)
            sizes.append(report.reads.size_bytes)
            if number < SCANS:
                seconds, matches = timed(partial(table.scan, where))
                assert matches == expected
                scans.append(seconds)
            seconds, matches = timed(partial(table.duckdb, '"key"."__raw__"', key))
            assert matches == expected
            peers.append(seconds)
        compare_index(table, Path(folder), chosen.lookups, chosen.latency)
        compare_sets(table, chosen.latency)
    took = [f"{_median(finds, kind) * 1000:,.0f} ms" for kind in (0, 1)]
    print(f"find {took[0]}, {took[1]} of CPU")
    read = f"{statistics.median(sizes):,.0f} bytes"
    for made, what in zip(requests, ("an absent key", "a key"), strict=True):
        if made:
            print(f"requests for {what}: {statistics.median(made):,.0f}, at most {max(made):,}")
    print(f"read {read}")
    for name, times in (("archiver replay --where", scans), ("DuckDB", peers)):
        ratios = [_median(times, kind) / _median(finds, kind) for kind in (0, 1)]
        print(f"{name} takes {ratios[0]:,.1f} times as long, and {ratios[1]:,.1f} times the CPU")


def _median(times: list[tuple[float, float]], kind: int) -> float:
    return statistics.median(it[kind] for it in times)


if __name__ == "__main__":
    main()
