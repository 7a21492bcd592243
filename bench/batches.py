"""Speed of fetching whole record batches from an archive, compared with records, and with aiokafka's writing.

Batches of 100 records of 240 bytes, archived as raw values in local files of 32 MB. `records` replays, `batches`
fetches everything with each codec, `from anywhere` fetches 1 MiB at spread offsets, `aiokafka` writes. Uncompressed MB,
wall time and CPU.

MB/s of CPU, 2 cores under load 15: records 320; batches 190 uncompressed, 35 gzip, 128 snappy, 132 lz4, 64 zstd;
aiokafka 280, 37, 215, 64 and 86. A fetch from anywhere took 48 ms, because Parquet decodes the row group's earlier
rows; a next fetch 5 ms.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords
from record_batch import RECORDS, batches, write_by
from rich.console import Console
from rich.table import Table

from archiver.archive.batches import ArchivedBatches, BatchCursor, BatchOptions
from archiver.archive.topic_archive import TopicArchive
from archiver.codecs import Codec
from tests.support.archive.archived_batches import archived, fetches

PLACES = 16
FILE_MB = 32


def read_records(archive: TopicArchive) -> int:
    return sum(batch.num_rows for batch in archive.records(0))


def fetch_all(archive: TopicArchive, max_bytes: int, codec: Codec) -> int:
    with ArchivedBatches(archive) as source:
        return sum(response.size for response in fetches(source, max_bytes, compression=codec))


def fetch_anywhere(archive: TopicArchive, max_bytes: int) -> int:
    end = archive.end(0)
    with ArchivedBatches(archive, BatchOptions(open_streams=0)) as source:
        cursors = [BatchCursor(partition=0, offset=index * end // PLACES) for index in range(PLACES)]
        return sum(source.fetch(cursor, max_bytes, compression=Codec.NONE).size for cursor in cursors)


def sides(archive: TopicArchive, log: bytes, max_bytes: int) -> dict[str, Callable[[], int]]:
    objects = [
        (record.timestamp, record.key, record.value, list(record.headers))
        for batch in iter(MemoryRecords(log).next_batch, None)
        for record in batch
    ]

    def fetched(codec: Codec) -> Callable[[], int]:
        return lambda: fetch_all(archive, max_bytes, codec)

    def written(codec: Codec) -> Callable[[], int]:
        return lambda: write_by(AioBuilder, codec, objects)

    return {
        "records": lambda: read_records(archive),
        **{f"batches, {codec.word}": fetched(codec) for codec in Codec},
        "from anywhere": lambda: fetch_anywhere(archive, max_bytes),
        **{f"aiokafka writes, {codec.word}": written(codec) for codec in Codec},
    }


def measured(turns: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, run in turns.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole batches of an archive")
    parser.add_argument("--megabytes", type=float, default=64.0, help="of uncompressed batches")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fetch", type=int, default=1 << 20, help="bytes a fetch may take")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    options = parser.parse_args()
    log, count = batches("none", int(options.megabytes * 1e6))
    with tempfile.TemporaryDirectory(prefix="batches-") as folder:
        files = max(1, round(options.megabytes / FILE_MB))
        archive = archived(Path(folder), log, end=count, files=files).archive()
        totals = read_records(archive), fetch_all(archive, options.fetch, Codec.NONE)
        if totals != (count, len(log)):
            raise AssertionError(totals, count, len(log))
        times = measured(sides(archive, log, options.fetch), options.rounds)
    table = Table(title=f"{len(log) / 1e6:.0f} MB in {count // RECORDS:,} batches; median of {options.rounds}")
    for heading in ("side", "wall s", "CPU s", "MB/s", "MB/s of CPU"):
        table.add_column(heading, justify="left" if heading == "side" else "right")
    results: list[dict[str, Any]] = []
    for name, taken in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*taken, strict=True))
        size = PLACES * options.fetch if name == "from anywhere" else len(log)
        results.append({"side": name, "wall": wall, "cpu": cpu, "mb": size / 1e6})
        table.add_row(name, f"{wall:.3f}", f"{cpu:.3f}", f"{size / wall / 1e6:,.0f}", f"{size / cpu / 1e6:,.0f}")
    Console(width=None if Console().is_terminal else 120).print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
