"""The kernels release the GIL."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from archiver.wire import decode_batches, encode_batches
from archiver.wire.record_digest import RecordDigest
from schema_mapping import compile_mapping
from tests.support.engine.cpu_time import spent_by_threads
from tests.support.kafka.record_batches import Record, build
from tests.support.schemas.proto_text import descriptor_of

TEXT = "message M { int64 id = 1; string name = 2; repeated M inner = 3; repeated int32 points = 4; double d = 5; }"
ROUNDS = 15
ATTEMPTS = 3
WANTED = 1.7

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs the scheduler's times of Linux"),
]


def value(index: int) -> bytes:
    inner = b"\x08" + bytes([index & 0x7F | 1]) + b"\x12\x0dCentral Place"
    return b"\x08\xac\x02\x12\x0a%010d" % index + (b"\x1a" + bytes([len(inner)]) + inner) * 3 + b"\x22\x03\x01\x02\x03"


def kernels() -> dict[str, Callable[[], object]]:
    kernel = compile_mapping(descriptor_of(TEXT))
    values = pa.array([value(index) for index in range(100_000)])
    rows = kernel.decode(values)
    assert rows.field("__raw__").null_count == len(rows)
    some = [Record(value=b"%01000d" % index, headers=(("trace", b"0123456789"),)) for index in range(1_000)]
    fetched = b"".join(build(some, base_offset=1_000 * batch) for batch in range(8))
    records = decode_batches(fetched, start_offset=0, end_offset=1 << 40).records
    return {
        "decode": partial(kernel.decode, values),
        "encode": partial(kernel.encode, rows),
        "record batches": partial(decode_batches, fetched, start_offset=0, end_offset=1 << 40),
        "batches of records": partial(encode_batches, records),
        "digest": partial(RecordDigest.of_fetched, records, partition=0),
    }


@pytest.mark.parametrize("name", ["decode", "encode", "record batches", "batches of records", "digest"])
def test_two_threads_do_the_work_of_nearly_two(name: str) -> None:
    run = kernels()[name]
    run()
    times = max(1, round(0.05 / spent_by_threads(run, 1, 1)))
    result: list[float] = []
    while len(result) < ATTEMPTS and (not result or result[-1] < WANTED):
        rounds = [2 * spent_by_threads(run, 1, times) / spent_by_threads(run, 2, times) for _ in range(ROUNDS)]
        result.append(statistics.median(rounds))
    assert max(result) >= WANTED, result
