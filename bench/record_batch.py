"""The speed at which Fetch responses become columns, beside aiokafka's Cython reader on the same bytes.

Recipe: `python bench/record_batch.py [codec…]`. 16 MiB of batches of 100 records, 200 bytes each with a key and one
header, built by aiokafka. Each side takes the best of five runs on one core; a run of aiokafka touches key, value,
offset, timestamp and headers of each record, as any consumer does.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from archiver.wire import decode_batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SIZE = 16 << 20
RECORDS = 100


def batch(base_offset: int, codec: int, draw: random.Random) -> bytes:
    """One batch at `base_offset`, which its checksum leaves out."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for place in range(RECORDS):
        value = draw.randbytes(90) + b"a value that repeats itself " * 4
        key = b"key-%08d" % draw.randrange(1000)
        builder.append(place, 1_700_000_000_000 + place, key, value, [("trace", b"0123456789")])
    return base_offset.to_bytes(8, "big") + bytes(builder.build())[8:]


def best(run: Callable[[], int]) -> tuple[float, int]:
    """Seconds of the fastest of five runs, and the records it saw."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        seen = run()
        times.append(time.perf_counter() - start)
    return min(times), seen


def ours(data: bytes) -> int:
    """Records decoded to columns."""
    return int(decode_batches(data, start_offset=0, end_offset=1 << 40).records.num_rows)


def theirs(data: bytes) -> int:
    """Records decoded to objects."""
    records, seen = MemoryRecords(data), 0
    while (each := records.next_batch()) is not None:
        if not each.validate_crc():
            raise AssertionError
        for record in each:
            _touch(record.offset, record.timestamp, record.key, record.value, record.headers)
            seen += 1
    return seen


def _touch(*_: Any) -> None: ...


def main() -> None:
    """Print both speeds for each codec asked for."""
    for codec in sys.argv[1:] or list(CODECS):
        draw, size = random.Random(1), 0
        parts: list[bytes] = []
        while size < SIZE:
            parts.append(batch(len(parts) * RECORDS, CODECS[codec], draw))
            size += len(parts[-1])
        data = b"".join(parts)
        plain = len(parts) * RECORDS * 230
        for name, run in (("archiver", ours), ("aiokafka", theirs)):
            seconds, seen = best(partial(run, data))
            print(
                f"{codec:7}{name:10}{seen / seconds / 1e6:7.2f} M records/s"
                f"{len(data) / seconds / 1e6:8.0f} MB/s fetched{plain / seconds / 1e6:8.0f} MB/s of records"
            )


if __name__ == "__main__":
    main()
