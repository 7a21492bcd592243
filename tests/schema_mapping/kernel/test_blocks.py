"""Reused memory is bounded and never shared."""

from __future__ import annotations

import gc

import pyarrow as pa

from schema_mapping import compile_mapping
from schema_mapping.kernel.blocks import in_use, kept
from tests.support.schemas.proto_text import descriptor_of

KEPT = 64 << 20


def rows_of(count: int, text: bytes) -> pa.StructArray:
    mapping = compile_mapping(descriptor_of("message M { int64 id = 1; string name = 2; }"))
    return mapping.decode(pa.array([b"\x08\x05\x12" + bytes([len(text)]) + text] * count))


def test_memory_given_back_is_used_again() -> None:
    gc.collect()
    for _ in range(2):  # blocks that earlier tests left may fill what is kept, and the first run then frees them all
        rows_of(100_000, b"first")
    before, idle = in_use(), kept()
    again = rows_of(100_000, b"other")
    assert idle - kept() == in_use() - before >= 500_000
    del again
    assert (in_use(), kept()) == (before, idle)


def test_held_rows_keep_what_they_hold() -> None:
    kept = [rows_of(30_000, b"text %d" % number) for number in range(9)]
    slices = [rows.field("name")[-1:] for rows in kept]
    del kept
    assert [text.to_pylist() for text in slices] == [[f"text {number}"] for number in range(9)]


def test_what_is_kept_is_bounded() -> None:
    retained = [rows_of(1_000_000 + 50_000 * number, b"nine char") for number in range(6)]
    assert retained
    del retained
    assert kept() <= KEPT
