"""Speed of Fetch responses to records, and records to batches, compared with aiokafka and kafka-python.

Batches of 100 records of 240 bytes, built by aiokafka (Cython). Seconds of one core, median and spread. The archiver
makes columns; a peer touches all fields of each record, with the same checks, or gives each to its builder.
kafka-python lacks snappy and lz4.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
from rich.console import Console
from rich.table import Table

from archiver.wire import decode_batches, encode_batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
WITHOUT_KAFKA_PYTHON = {CODECS["snappy"], CODECS["lz4"]}
OURS = ("archiver", "archiver, encode")
SIDES = ("archiver", "aiokafka", "kafka-python", "archiver, encode", "aiokafka, encode", "kafka-python, encode")
RECORDS = 100
ENOUGH = 3.0  # seconds after which a slow side stops early


def batch(base_offset: int, codec: int, draw: random.Random) -> bytes:
    builder = AioBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for index in range(RECORDS):
        value = draw.randbytes(90) + b"a value that repeats itself " * 4
        key = b"key-%08d" % draw.randrange(1000)
        builder.append(index, 1_700_000_000_000 + index, key, value, [("trace", b"0123456789")])
    return base_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def batches(codec: str, size: int) -> tuple[bytes, int]:
    """Return about `size` bytes uncompressed, and the number of records."""
    draw = random.Random(1)
    count = max(size // len(batch(0, 0, draw)), 1)
    return b"".join(batch(at * RECORDS, CODECS[codec], draw) for at in range(count)), count * RECORDS


def read_by(records: Any) -> int:
    seen = 0
    while (chunk := records.next_batch()) is not None:
        if not chunk.validate_crc():
            raise AssertionError
        for record in chunk:
            _touch(record.offset, record.timestamp, record.key, record.value, record.headers)
            seen += 1
    return seen


def _touch(*_: Any) -> None: ...


def write_by(builder: Any, codec: int, records: list[tuple[int, bytes | None, bytes | None, Any]]) -> int:
    for first in range(0, len(records), RECORDS):
        batch = builder(2, codec, 0, -1, -1, -1, 1 << 30)
        for index, (timestamp, key, value, headers) in enumerate(records[first : first + RECORDS]):
            batch.append(index, timestamp, key, value, headers)
        batch.build()
    return len(records)


def sides(data: bytes, count: int) -> dict[str, Callable[[], int]]:
    columns = decode_batches(data, start_offset=0, end_offset=count).records
    codec = KafkaPythonRecords(data).next_batch().compression_type
    objects = [
        (record.timestamp, record.key, record.value, list(record.headers))
        for batch in iter(AioRecords(data).next_batch, None)
        for record in batch
    ]
    turns = {
        "archiver": lambda: int(decode_batches(data, start_offset=0, end_offset=count).records.num_rows),
        "aiokafka": lambda: read_by(AioRecords(data)),
        "kafka-python": lambda: read_by(KafkaPythonRecords(data)),
        "archiver, encode": lambda: len(encode_batches(columns)) * RECORDS,
        "aiokafka, encode": lambda: write_by(AioBuilder, codec, objects),
        "kafka-python, encode": lambda: write_by(KafkaPythonBuilder, codec, objects),
    }
    if codec in WITHOUT_KAFKA_PYTHON:
        del turns["kafka-python"], turns["kafka-python, encode"]
    return turns


def play(turns: dict[str, Callable[[], int]], count: int, rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, run in turns.items():
            taken = seconds[name]
            if len(taken) < 3 or sum(taken) < ENOUGH:
                gc.collect()
                gc.disable()
                start = time.process_time()
                seen = run()
                taken.append(time.process_time() - start)
                gc.enable()
                if seen != count:
                    raise AssertionError(f"{name} saw {seen} records of {count}")
    return seconds


def result(name: str, seconds: list[float], ours: list[float], *, size: int, count: int) -> dict[str, Any]:
    median = statistics.median(seconds)
    return {
        "side": name,
        "million_records_per_second": {
            "median": round(count / median / 1e6, 2),
            "least": round(count / max(seconds) / 1e6, 2),
            "most": round(count / min(seconds) / 1e6, 2),
        },
        "mb_per_second": round(size / median / 1e6),
        "rounds": len(seconds),
        "ours_is_faster_by": round(median / statistics.median(ours), 2),
    }


def cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    speed = found["million_records_per_second"]
    text = f"{speed['median']:.2f} M/s\n({speed['least']:.2f} to {speed['most']:.2f})\n{found['mb_per_second']:,} MB/s"
    return text if found["side"].startswith("archiver") else f"{text}\n{found['ours_is_faster_by']:.2f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description="Record batches")
    parser.add_argument("--megabytes", type=float, default=16.0, help="of uncompressed batches")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--codec", choices=CODECS, help="only this one")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    table = Table(title="Record batches: median (least to most); MB/s of uncompressed batches; ours / theirs")
    for heading in ("codec", *SIDES):
        table.add_column(heading, justify="right")
    for codec in [options.codec] if options.codec else CODECS:
        plain, count = batches("none", int(options.megabytes * 1e6))
        data, _ = batches(codec, int(options.megabytes * 1e6))
        seconds = play(sides(data, count), count, options.rounds)
        line = {
            name: result(name, taken, seconds[OURS[name.endswith("encode")]], size=len(plain), count=count)
            for name, taken in seconds.items()
        }
        results += [{"codec": codec} | outcome for outcome in line.values()]
        table.add_row(codec, *(cell(line.get(name)) for name in SIDES))
    Console(width=None if Console().is_terminal else 140).print(table)
    if options.json:
        peers = {name: version(name) for name in ("aiokafka", "kafka-python")}
        options.json.write_text(json.dumps({"peers": peers, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
