"""Which zstd frames the kept decompressor reads."""

from __future__ import annotations

import threading

import cramjam
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from archiver.wire.zstd_frame import inflate_frame

TEXT = b"".join(b"order %d of %d; " % (number, number * number % 97) for number in range(30_000))
NOISE = np.random.default_rng(1).bytes(300_000)
STATED_128_EMPTY = bytes.fromhex("28b52ffd2080010000")
"""A frame that says it holds 128 bytes, with one empty block."""


def in_pieces(data: bytes, *, checksum: bool = False, level: int = 3) -> bytes:
    stream = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compressobj()
    parts = [stream.compress(data[at : at + 100_000]) for at in range(0, len(data), 100_000)]
    return b"".join((*parts, stream.flush()))


FRAMES = {
    "with its size": (TEXT, zstandard.ZstdCompressor().compress(TEXT)),
    "without its size": (TEXT, in_pieces(TEXT)),
    "with a checksum": (TEXT, in_pieces(TEXT, checksum=True)),
    "one byte repeated": (bytes(500_000), in_pieces(bytes(500_000))),
    "nothing to compress": (NOISE, in_pieces(NOISE)),
    "nothing": (b"", in_pieces(b"")),
}


def inflated(frame: bytes, room: int = 1 << 20) -> bytes | None:
    result = inflate_frame(memoryview(frame), memoryview(bytearray(room)))
    return None if result is None else bytes(result)


@pytest.mark.parametrize("name", FRAMES)
def test_one_frame(name: str) -> None:
    data, frame = FRAMES[name]
    assert inflated(frame) == data
    assert inflated(frame, len(data) + 1) == data


@pytest.mark.parametrize("name", FRAMES)
def test_room_that_is_full_may_have_been_too_small(name: str) -> None:
    data, frame = FRAMES[name]
    for room in {len(data), max(len(data) - 1, 0), len(data) // 2, 0}:
        assert inflated(frame, room) is None


@pytest.mark.parametrize("name", FRAMES)
def test_what_is_cut_off_or_goes_on_is_left_to_others(name: str) -> None:
    _, frame = FRAMES[name]
    for size in {*range(min(len(frame), 20)), len(frame) // 2, len(frame) - 4, len(frame) - 1} - {len(frame)}:
        assert inflated(frame[:size]) is None
    for more in (b"\0", b"garbage", frame, zstandard.compress(b""), bytes.fromhex("502a4d1801000000ff")):
        assert inflated(frame + more) is None


def test_frames_that_lie_or_need_much_memory() -> None:
    assert inflated(STATED_128_EMPTY) is None
    with_checksum = bytearray(FRAMES["with a checksum"][1])
    with_checksum[-1] ^= 1
    assert inflated(bytes(with_checksum)) is None
    wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=24)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    frame = stream.compress(TEXT) + stream.flush()
    assert inflated(frame) is None
    assert inflated(FRAMES["with its size"][1]) == TEXT


def test_each_thread_has_its_own_decompressor() -> None:
    result: dict[int, set[bytes | None]] = {}

    def read(number: int) -> None:
        name = list(FRAMES)[number % len(FRAMES)]
        result[number] = {inflated(FRAMES[name][1]) for _ in range(20)} - {FRAMES[name][0]}

    threads = [threading.Thread(target=read, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == {number: set() for number in range(12)}


@given(
    data=st.binary(max_size=400).map(lambda few: few * 3),
    kind=st.sampled_from(("stated", "plain", "checksum")),
    spoilt=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 3),
    room=st.sampled_from((0, 1, 500, 1200, 5000)),
)
def test_whatever_is_read_is_what_the_other_decompressor_reads(
    data: bytes, kind: str, spoilt: list[tuple[int, int]], cut: int, room: int
) -> None:
    whole = zstandard.compress(data) if kind == "stated" else in_pieces(data, checksum=kind == "checksum")
    frame = bytearray(whole)
    for position, octet in spoilt:
        frame[position % len(frame)] = octet
    frame = frame[: len(frame) - cut]
    result = inflated(bytes(frame), room)
    if result is not None:
        assert result == bytes(cramjam.zstd.decompress(bytes(frame)))
