"""Streams that send in the background."""

from __future__ import annotations

import io
import random

import pytest

from archiver.storage.bounded_copy import AHEAD, CHUNK, copy


class Slow(io.RawIOBase):
    def __init__(self) -> None:
        self.sent = bytearray()
        self.waiting = bytearray()
        self.most = 0

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.waiting += data
        self.most = max(self.most, len(self.waiting))
        return len(data)

    def flush(self) -> None:
        self.sent += self.waiting
        self.waiting.clear()


@pytest.mark.parametrize("size", [0, 1, CHUNK, AHEAD, AHEAD + 1, 3 * AHEAD + 12_345])
def test_no_more_than_so_much_is_on_its_way(size: int) -> None:
    data, sink = random.Random(size).randbytes(size), Slow()
    copy(io.BytesIO(data), sink)
    assert sink.most == min(size, AHEAD)
    assert sink.sent + sink.waiting == data


def test_a_stream_that_cant_wait_takes_it_all() -> None:
    class Plain:
        def __init__(self) -> None:
            self.data = bytearray()

        def write(self, data: bytes, /) -> int:
            self.data += data
            return len(data)

    sink = Plain()
    copy(io.BytesIO(bytes(AHEAD + CHUNK + 1)), sink)
    assert sink.data == bytes(AHEAD + CHUNK + 1)
