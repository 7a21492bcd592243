"""Chunks on disk: equal, bounded, removed."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.batches import BatchCursor, FetchedBatches
from archiver.errors import StorageError
from archiver.serve.reading import Chunk, SpilledChunks

MIB = 1 << 20


def chunk(start: int, batches: list[tuple[int, int]], following: int, *, parts: int = 1, seed: int = 0) -> Chunk:
    sizes = np.array([size for _, size in batches], np.int64)
    data = np.random.default_rng(seed).bytes(int(sizes.sum()))
    edges = sorted({0, len(data), *np.cumsum(sizes).tolist()[:: max(1, len(batches) // parts)]})
    decoded = Chunk.decoded(
        start,
        FetchedBatches(
            parts=tuple(memoryview(data[low:high]) for low, high in pairwise(edges)),
            cursor=BatchCursor(partition=0, offset=following),
            end=following,
            sizes=sizes,
            last_offsets=np.array([last for last, _ in batches], np.int64),
        ),
    )
    assert decoded is not None
    return decoded


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 90)), min_size=1, max_size=12),
    st.integers(0, 400),
    st.integers(1, 4),
    st.data(),
)
def test_what_is_read_is_what_a_chunk_in_memory_gives(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    most: int,
    parts: int,
    data: st.DataObject,
) -> None:
    lasts = (9 + np.cumsum([step for step, _ in steps])).tolist()
    batches = [(last, size) for last, (_, size) in zip(lasts, steps, strict=True)]
    decoded = chunk(10, batches, lasts[-1] + data.draw(st.integers(1, 5)), parts=parts)
    spilled = SpilledChunks(tmp_path_factory.getbasetemp(), MIB)
    spilled.write(chunk(0, [(9, 33)], 10, seed=1))
    kept = spilled.write(decoded)
    offset = data.draw(st.integers(10, decoded.next_offset - 1))
    expected, following = decoded.take(offset, most, must_give=True)
    taken = kept.read(offset, most)
    assert taken.start <= offset < taken.next_offset
    parts_found, after = taken.take(offset, most, must_give=True)
    assert (b"".join(parts_found), after) == (b"".join(expected), following)
    assert taken.size <= max(most, *(size for _, size in batches)), "no more is read than asked for"
    whole = kept.read(kept.start, kept.size)
    assert (whole.start, whole.next_offset) == (decoded.start, decoded.next_offset)
    assert b"".join(whole.parts) == b"".join(decoded.parts)
    assert whole.ends.tolist() == decoded.ends.tolist()
    assert whole.last_offsets.tolist() == decoded.last_offsets.tolist()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def filled(spilled: SpilledChunks, count: int, size: int, topic: str = "orders") -> None:
    for start in range(0, 10 * count, 10):
        spilled.put(topic, 0, spilled.write(chunk(start, [(start + 9, size)], start + 10, seed=start)))


def test_the_oldest_are_given_up_and_the_files_with_them(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    before = open_files()
    filled(spilled, 100, MIB // 2)
    assert 4 * MIB <= spilled.bytes <= 8 * MIB
    assert spilled.find("orders", 0, 5) is None
    stored = spilled.find("orders", 0, 995)
    assert stored is not None
    assert stored.read(995, MIB).size == MIB // 2
    assert open_files() - before <= 17
    assert list(tmp_path.iterdir()) == [], "files without names"


def test_small_chunks_count_for_their_place_in_memory(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 4 * MIB)
    filled(spilled, 3_000, 10)
    assert len(spilled._index) <= 1 + 4 * MIB // 4096 + MIB // 4096


def test_evicted_chunk_stays_readable_for_its_holders(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 2 * MIB)
    filled(spilled, 1, 1000)
    kept = spilled.find("orders", 0, 0)
    assert kept is not None
    filled(spilled, 50, MIB // 2, topic="users")
    assert spilled.find("orders", 0, 0) is None
    assert b"".join(kept.read(0, MIB).parts) == b"".join(chunk(0, [(9, 1000)], 10).parts)


def test_a_topic_is_forgotten(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    filled(spilled, 5, 1000)
    filled(spilled, 5, 1000, topic="users")
    spilled.forget("orders")
    assert [spilled.find("orders", 0, offset) for offset in range(50)] == [None] * 50
    assert spilled.next_start("orders", 0, 0) is None
    assert spilled.find("users", 0, 49) is not None
    spilled.forget("users")
    assert spilled.bytes == 0


def test_the_chunk_that_has_an_offset_is_found(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    for start in (20, 0):
        spilled.put("orders", 0, spilled.write(chunk(start, [(start + 9, 50)], start + 10)))
    chunks = [spilled.find("orders", 0, offset) for offset in (0, 9, 10, 19, 20, 29, 30)]
    assert [stored and stored.start for stored in chunks] == [0, 0, None, None, 20, 20, None]
    assert [spilled.next_start("orders", 0, offset) for offset in (0, 10, 20)] == [20, 20, None]
    assert spilled.find("orders", 1, 0) is None


def test_a_chunk_put_again_replaces_the_one_before(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    for seed in range(3):
        spilled.put("orders", 0, spilled.write(chunk(0, [(9, 50)], 10, seed=seed)))
    stored = spilled.find("orders", 0, 3)
    assert stored is not None
    assert b"".join(stored.read(0, MIB).parts) == b"".join(chunk(0, [(9, 50)], 10, seed=2).parts)
    spilled.give_up("orders", 0, stored)
    assert spilled.find("orders", 0, 3) is None
    spilled.give_up("orders", 0, stored)


def test_a_full_disk_is_told_and_left_alone_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    filled(spilled, 1, 1000)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    more = chunk(0, [(9, 50)], 10)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match=r"serve\.disk_cache"):
            spilled.write(more)
    assert not spilled.is_usable
    stored = spilled.find("orders", 0, 0)
    assert stored is not None
    assert stored.read(0, MIB).size == 1000


def test_a_write_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilled, write = SpilledChunks(tmp_path, 8 * MIB), os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:7], at))
    kept = spilled.write(chunk(0, [(4, 50), (9, 70)], 10))
    assert b"".join(kept.read(0, MIB).parts) == b"".join(chunk(0, [(4, 50), (9, 70)], 10).parts)


def test_a_file_that_was_cut_is_no_chunk(tmp_path: Path) -> None:
    spilled = SpilledChunks(tmp_path, 8 * MIB)
    kept = spilled.write(chunk(0, [(9, 5000)], 10))
    os.ftruncate(kept.file._number, 100)
    with pytest.raises(OSError, match="shorter"):
        kept.read(0, MIB)


def test_a_folder_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="disk_cache_folder"):
        SpilledChunks(tmp_path / "missing", MIB)
