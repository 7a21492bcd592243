"""Speed of digests of records, beside `mmh3` on the values alone.

64 MiB of records, with values of 20 bytes to 100 kB. MB for a core's second, best of seven.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import mmh3
import pyarrow as pa

from archiver.archive.records import RECORDS as SEEN
from archiver.wire import RECORDS
from archiver.wire.record_digest import RecordDigest

SIZE = 64 << 20
AROUND = 12 + 15


def fetched(rows: int, value_size: int) -> pa.RecordBatch:
    draw = random.Random(1)
    octets = draw.randbytes(value_size + 4096)
    columns = {
        "offset": range(rows),
        "timestamp": [1_700_000_000_000 + row for row in range(rows)],
        "key": [b"key-%08d" % (row % 1000) for row in range(rows)],
        "value": [octets[row % 4096 :][:value_size] for row in range(rows)],
        "headers": [[{"key": b"trace", "value": b"0123456789"}]] * rows,
        "append_timestamp": [None] * rows,
    }
    zeros = [0] * rows
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(field.name, zeros), field.type) for field in RECORDS], schema=RECORDS
    )


def seen(records: pa.RecordBatch) -> pa.RecordBatch:
    partition = pa.array([0] * records.num_rows, pa.int32())
    columns = [partition if field.name == "partition" else records.column(field.name) for field in SEEN]
    return pa.RecordBatch.from_arrays(columns, schema=SEEN)


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    for value_size in (20, 200, 2_000, 100_000):
        rows = SIZE // (value_size + AROUND)
        records = fetched(rows, value_size)
        replayed = seen(records)
        joined = b"".join(records.column("value").to_pylist())
        megabytes = rows * (value_size + AROUND) / 1e6
        incoming = best(partial(RecordDigest.of_fetched, records, partition=0))
        outgoing = best(partial(RecordDigest.of_seen, replayed))
        alone = best(partial(mmh3.mmh3_x64_128_digest, joined))
        print(
            f"values of {value_size:6} bytes: fetched {megabytes / incoming:6.0f} MB/s, replayed"
            f" {megabytes / outgoing:6.0f} MB/s, {rows / outgoing / 1e6:5.2f} M records/s;"
            f" mmh3 on one string {len(joined) / alone / 1e6:6.0f} MB/s"
        )


if __name__ == "__main__":
    main()
