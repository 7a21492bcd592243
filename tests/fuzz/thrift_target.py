"""Fuzz target: Thrift structs and changed Parquet footers, against a plain reader."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.storage.parquet.compact_thrift import Fields, ThriftError
from archiver.storage.parquet.thrift_reader import Structs, read_struct
from tests.fuzz.exact import exact_buffer
from tests.support.schemas.random_choices import SeededChoices
from tests.support.storage import plain_thrift


def check(octets: bytes) -> None:
    exact = memoryview(exact_buffer(octets)).cast("B") if octets else memoryview(b"")
    for start in (0, len(octets) // 2, len(octets)):
        assert _found(read_struct, exact, start) == _found(plain_thrift.read_struct, memoryview(octets), start)


def _found(read: Callable[[memoryview, int], tuple[Fields, int]], octets: memoryview, start: int) -> Any:
    """Return None if the reader finds no struct."""
    try:
        return _whole(read(octets, start))
    except (ThriftError, IndexError):
        return None


def _whole(value: Any) -> Any:
    """Read the lazy structs of lists too."""
    if isinstance(value, dict):
        return {field: _whole(item) for field, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_whole, value))
    return [_whole(item) for item in value] if isinstance(value, list | Structs) else value


def seeds() -> Iterator[bytes]:
    out = io.BytesIO()
    table = pa.table({"number": [1, 2], "text": ["a", None], "listed": [[b"x"], []]})
    pq.write_table(table, out, write_page_checksum=True, compression="zstd")
    data = out.getvalue()
    yield data[4:]
    yield data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    yield b"\x1b" * 40 + b"\0"
    yield b"\x1c" * 40 + b"\0" * 40
    yield b"\x19\xfc" + b"\xff" * 9 + b"\x7f"
    for seed in range(20):
        yield SeededChoices(seed).data(20 * seed)
