"""Which open streams are closed first."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.archive.batches import OpenStreams


class Stream:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class Source: ...


SOURCE = Source()


def keep(streams: OpenStreams, place: int, *, is_proven: bool = False, source: Source = SOURCE) -> Stream:
    stream: Any = Stream()
    if not streams.keep(source, place, stream, is_proven=is_proven):
        stream.close()
    return stream  # type: ignore[no-any-return]


def come_back(streams: OpenStreams, place: int) -> None:
    stream = streams.take(SOURCE, place)
    assert stream is not None
    assert streams.keep(SOURCE, place + 1, stream, is_proven=True)


@pytest.mark.parametrize("most", [2, 4, 16])
def test_streams_in_use_outlive_any_number_that_are_used_once(most: int) -> None:
    streams = OpenStreams(most)
    used = [10_000 * number for number in range(1, most - max(1, most // 4) + 1)]
    for position in used:
        keep(streams, position)
        come_back(streams, position)
    once = [keep(streams, offset) for offset in range(500)]
    for position in used:
        come_back(streams, position + 1)
    assert sum(not item.is_closed for item in once) == most - len(used)


@pytest.mark.parametrize("most", [1, 2, 5, 16])
def test_others_can_come_in_use_and_the_number_is_bounded(most: int) -> None:
    streams = OpenStreams(most)
    made = []
    for number in range(3 * most):
        made.append(keep(streams, 1_000 * number))
        for step in range(3):
            come_back(streams, 1_000 * number + step)
        assert sum(not item.is_closed for item in made) <= most
    assert sum(not item.is_closed for item in made) == most
    assert streams.has(SOURCE, 1_000 * (3 * most - 1) + 3)
    assert not streams.has(SOURCE, 1_000 * (3 * most - 1))


def test_none_is_kept_where_none_may_be() -> None:
    assert keep(OpenStreams(0), 1).is_closed
    assert OpenStreams(0).take(SOURCE, 1) is None


@pytest.mark.parametrize("is_proven", [True, False])
def test_a_closed_source_has_none(is_proven: bool) -> None:
    streams, source = OpenStreams(8), Source()
    ours, theirs = keep(streams, 1, is_proven=is_proven), keep(streams, 1, is_proven=is_proven, source=source)
    streams.close(SOURCE)
    assert (ours.is_closed, theirs.is_closed) == (True, False)
    assert keep(streams, 2, is_proven=is_proven).is_closed
    assert not keep(streams, 2, is_proven=is_proven, source=source).is_closed


def test_a_place_has_one_stream() -> None:
    streams = OpenStreams(8)
    assert not keep(streams, 1).is_closed
    assert keep(streams, 1).is_closed
    assert keep(streams, 1, is_proven=True).is_closed
