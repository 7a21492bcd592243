"""Hostile batches take time proportional to size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from archiver.wire import decode_batches, encode_batches
from archiver.wire.record_digest import RecordDigest
from tests.support.engine.cpu_time import spent
from tests.support.kafka.record_batches import Record, build, headers_of

HEADERS = 10_000
SHAPES: dict[str, Callable[[int], bytes]] = {
    "headers of one record": lambda n: build([Record(headers=tuple(("h", b"%d" % value) for value in range(n)))]),
    "records of one batch": lambda n: build([Record(headers=(("h", b"v"),))] * n),
    "batches": lambda n: b"".join(build([Record()], base_offset=value) for value in range(n // 10)),
    "one long value": lambda n: build([Record(value=b"x" * (100 * n))], builder="aiokafka"),
    "headers without a value": lambda n: build([Record(headers=(("", None),) * n)], codec="gzip"),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_time_grows_with_size(shape: Callable[[int], bytes]) -> None:
    small, large = shape(HEADERS), shape(4 * HEADERS)
    few, many = (decode_batches(data, start_offset=0, end_offset=1 << 40).records for data in (small, large))
    assert not grows_faster(lambda data: decode_batches(data, start_offset=0, end_offset=1 << 40), small, large)
    assert not grows_faster(encode_batches, few, many)
    assert not grows_faster(lambda records: RecordDigest.of_fetched(records, partition=0), few, many)


def grows_faster(run: Callable[[Any], object], small: Any, large: Any) -> bool:
    return spent(lambda: run(large)) > 10 * spent(lambda: run(small)) + 0.02


def test_ten_thousand_headers() -> None:
    headers = tuple((f"key-{value % 7}", None if value % 3 == 0 else b"%d" % value) for value in range(HEADERS))
    data = build([Record(), Record(headers=headers), Record()])
    decoded = decode_batches(data, start_offset=0, end_offset=1 << 40)
    assert headers_of(decoded)[1] == [(key.encode(), value) for key, value in headers]
    assert bytes(encode_batches(decoded.records).data) == data
