"""Buffers of zeros are large enough, shared, and read-only."""

from __future__ import annotations

import pytest

from schema_mapping.columns.zeros import zeros


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 100_000])
def test_large_enough_and_zero(size: int) -> None:
    buffer = zeros(size)
    assert buffer.size >= size
    assert not buffer.is_mutable
    assert buffer.to_pybytes().strip(b"\0") == b""


def test_shared() -> None:
    assert zeros(5000).address == zeros(8192).address
