"""CRC-32C equals Google's library."""

from __future__ import annotations

import random

import google_crc32c
import pytest

from archiver.wire.checksum import HARDWARE, checksum

SIZES = (0, 1, 7, 8, 9, 63, 1023, 1024, 3071, 3072, 3073, 3080, 6144, 10_000, 100_003)


@pytest.mark.parametrize("hardware", [False, pytest.param(True, marks=pytest.mark.skipif(not HARDWARE, reason="none"))])
@pytest.mark.parametrize("size", SIZES)
def test_as_google_computes_it(size: int, hardware: bool) -> None:
    data = random.Random(size).randbytes(size + 3)
    for start in range(4):
        assert checksum(data[start : start + size], hardware=hardware) == google_crc32c.value(
            data[start : start + size]
        )


def test_a_published_value() -> None:
    assert checksum(b"123456789") == 0xE3069283
