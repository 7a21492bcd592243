"""Chunks from any offset; bounded cache."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.batches import BatchCursor, FetchedBatches
from archiver.serve.reading import Chunk, ChunkCache


def chunk(start: int, batches: list[tuple[int, int]], following: int, *, parts: int = 1) -> Chunk:
    sizes = np.array([size for _, size in batches], np.int64)
    data = b"".join(bytes([number % 256]) * size for number, (_, size) in enumerate(batches))
    cuts = [0, *np.cumsum(sizes).tolist()]
    edges = sorted({0, len(data), *cuts[:: max(1, len(cuts) // parts)]})
    views = tuple(memoryview(data[low:high]) for low, high in pairwise(edges))
    lasts = np.array([last for last, _ in batches], np.int64)
    fetched = FetchedBatches(
        parts=views,
        cursor=BatchCursor(partition=0, offset=following),
        end=following,
        sizes=sizes,
        last_offsets=lasts,
    )
    decoded = Chunk.decoded(start, fetched)
    assert decoded is not None
    return decoded


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 90)), min_size=1, max_size=12),
    st.integers(0, 400),
    st.booleans(),
    st.integers(1, 4),
    st.data(),
)
def test_taking_gives_the_batches_that_fit_and_no_part_of_one(
    steps: list[tuple[int, int]], most: int, must_give: bool, parts: int, data: st.DataObject
) -> None:
    lasts = np.cumsum([step for step, _ in steps]).tolist()
    batches = [(last, size) for last, (_, size) in zip(lasts, steps, strict=True)]
    following = lasts[-1] + data.draw(st.integers(1, 5))
    decoded = chunk(0, batches, following, parts=parts)
    offset = data.draw(st.integers(0, following - 1))
    taken, after = decoded.take(offset, most, must_give=must_give)
    first = next((index for index, last in enumerate(lasts) if last >= offset), None)
    if first is None:
        assert (taken, after) == ((), following)
        return
    end, size = first, 0
    while end < len(batches) and (size + batches[end][1] <= most or (must_give and end == first)):
        size += batches[end][1]
        end += 1
    expected = b"".join(bytes([number]) * batches[number][1] for number in range(first, end))
    assert b"".join(map(bytes, taken)) == expected
    assert after == (offset if end == first else following if end == len(batches) else lasts[end - 1] + 1)


def test_offsets_without_records_become_a_batch_to_step_over() -> None:
    nothing = np.empty(0, np.int64)
    fetched = FetchedBatches(
        parts=(), cursor=BatchCursor(partition=0, offset=9), end=9, sizes=nothing, last_offsets=nothing
    )
    decoded = Chunk.decoded(4, fetched)
    assert decoded is not None
    assert decoded.take(4, 1, must_give=True)[1] == 9
    assert Chunk.decoded(9, fetched) is None


def test_the_chunk_that_has_an_offset_is_found() -> None:
    cache = ChunkCache(1 << 20)
    for start in (20, 0, 10):
        cache.put("orders", 0, chunk(start, [(start + 9, 50)], start + 10))
    for offset in range(30):
        cached = cache.find("orders", 0, offset)
        assert cached is not None
        assert cached.start == offset // 10 * 10
    assert [cache.find(*where) for where in (("orders", 0, 30), ("orders", 1, 5), ("users", 0, 5))] == [None] * 3
    cache.forget("orders")
    assert (len(cache), cache.bytes, cache.find("orders", 0, 5)) == (0, 0, None)


@pytest.mark.parametrize("size", [1, 4_000])
def test_the_cache_gives_up_what_was_unused_for_longest(size: int) -> None:
    cache = ChunkCache(40_000)
    for start in range(200):
        cache.put("orders", 0, chunk(start, [(start, size)], start + 1))
        assert cache.bytes <= 40_000
        assert cache.find("orders", 0, 0) is not None, "in use"
    assert cache.find("orders", 0, 199) is not None
    assert cache.find("orders", 0, 1) is None


def test_a_chunk_above_the_limit_is_held_alone() -> None:
    cache = ChunkCache(1_000)
    cache.put("orders", 0, chunk(0, [(0, 10)], 1))
    cache.put("orders", 0, chunk(1, [(1, 5_000)], 2))
    assert len(cache) == 1
    assert cache.find("orders", 0, 1) is not None


def test_a_chunk_put_again_counts_once() -> None:
    cache = ChunkCache(1 << 20)
    for _ in range(3):
        cache.put("orders", 0, chunk(0, [(9, 50)], 10))
    once = cache.bytes
    cache.forget("orders")
    assert (len(cache), cache.bytes) == (0, 0)
    assert once < 3_000
