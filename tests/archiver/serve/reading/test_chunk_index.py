"""Chunks are found by offset."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from archiver.serve.reading.chunk_index import ChunkIndex, Key


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    next_offset: int


places = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1))


@given(st.lists(st.tuples(places, st.integers(0, 20), st.integers(1, 5)), max_size=30), st.data())
def test_it_finds_what_a_search_through_all_finds(
    added: list[tuple[tuple[str, int], int, int]], data: st.DataObject
) -> None:
    index, model = ChunkIndex[Span](), dict[Key, Span]()
    for partition, start, size in added:
        key, span = (partition, start), Span(start, start + size)
        assert index.pop(key) == model.pop(key, None)
        assert index.put(partition, span) == key
        model[key] = span
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(model)))
            assert index.pop(gone) == model.pop(gone)
    assert len(index) == len(model)
    partition, offset = data.draw(places), data.draw(st.integers(0, 30))
    starts = [start for candidate, start in model if candidate == partition]
    last = max((start for start in starts if start <= offset), default=None)
    expected = None if last is None else model[partition, last]
    assert index.find(partition, offset) == (expected if expected and offset < expected.next_offset else None)
    assert index.next_start(partition, offset) == min((start for start in starts if start > offset), default=None)
    assert sorted(index.of_topic("a")) == sorted(key for key in model if key[0][0] == "a")
    assert all(index.get(key) == span for key, span in model.items())
