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
    index, known = ChunkIndex[Span](), dict[Key, Span]()
    for place, start, size in added:
        key, span = (place, start), Span(start, start + size)
        assert index.pop(key) == known.pop(key, None)
        assert index.put(place, span) == key
        known[key] = span
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(known)))
            assert index.pop(gone) == known.pop(gone)
    assert len(index) == len(known)
    place, offset = data.draw(places), data.draw(st.integers(0, 30))
    starts = [start for one, start in known if one == place]
    last = max((start for start in starts if start <= offset), default=None)
    expected = None if last is None else known[place, last]
    assert index.find(place, offset) == (expected if expected and offset < expected.next_offset else None)
    assert index.next_start(place, offset) == min((start for start in starts if start > offset), default=None)
    assert sorted(index.of_topic("a")) == sorted(key for key in known if key[0][0] == "a")
    assert all(index.get(key) == span for key, span in known.items())
