"""Reads are counted, also of streams."""

from __future__ import annotations

import io
from typing import Any, cast

from archiver.storage.metered import MeteredStream, ReadMeter


def test_a_stream_without_read_at_is_read_at_positions() -> None:
    meter = ReadMeter()
    stream = MeteredStream(cast("Any", io.BytesIO(b"0123456789")), meter)
    assert stream.read_at(3, 4) == b"456"
    assert stream.read_at(2, 0) == b"01"
    assert (meter.requests, meter.size_bytes) == (3, 5)
