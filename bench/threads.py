"""Speedup of two threads over one, because the kernels release the GIL.

Medians, less the time that a thread waited for a core (not for the other thread). Recipe: `python bench/threads.py
[rounds]`.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
from record_batch import CODECS, batch
from values.shapes import main_shapes

from archiver.wire import RECORDS, decode_batches, encode_batches
from archiver.wire.record_digest import RecordDigest
from schema_mapping import compile_mapping
from tests.support.engine.cpu_time import spent_by_threads

SIZE = 8 << 20


def kernels() -> dict[str, Callable[[], object]]:
    shape = next(shape for shape in main_shapes() if shape.name == "nested order")
    values = pa.array(list(shape.values(SIZE)), pa.binary())
    mapping = compile_mapping(shape.descriptor)
    draw = random.Random(1)
    fetched = b"".join(batch(index * 100, CODECS["none"], draw) for index in range(SIZE // 25_000))
    records = decode_batches(fetched, start_offset=0, end_offset=1 << 40).records
    assert records.schema == RECORDS
    return {
        "decode": partial(mapping.decode, values),
        "encode": partial(mapping.encode, mapping.decode(values)),
        "record batches": partial(decode_batches, fetched, start_offset=0, end_offset=1 << 40),
        "their encoding": partial(encode_batches, records),
        "digest": partial(RecordDigest.of_fetched, records, partition=0),
    }


def speedup(run: Callable[[], object], rounds: int) -> float:
    run()
    times = max(1, round(0.05 / spent_by_threads(run, 1, 1)))
    return statistics.median(
        2 * spent_by_threads(run, 1, times) / spent_by_threads(run, 2, times) for _ in range(rounds)
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    for name, run in kernels().items():
        print(f"{name:16}{speedup(run, rounds):6.2f} times the work of one thread")


if __name__ == "__main__":
    main()
