"""How a stream chooses its zstd strategy."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import zstandard

from archiver.codecs import Codec
from archiver.wire import BatchEncoder, decode_batches
from archiver.wire.attributes import CODEC
from archiver.wire.deflate import Zstd, deflate
from tests.support.kafka.record_batches import Record, build

DRAW = random.Random(5)


def numbers() -> bytes:
    return b"".join(bytes(DRAW.choices(range(128), k=12)) + b"the same again" for _ in range(1000))


def text() -> bytes:
    return bytes(DRAW.choices(b"0123456789", k=20_000))


def frames(*parts: bytes) -> list[bytes]:
    zstd = Zstd()
    result = [deflate(Codec.ZSTD, memoryview(part), zstd) for part in parts]
    for frame, part in zip(result, parts, strict=True):
        assert zstandard.frame_content_size(frame) == len(part)
        assert zstandard.ZstdDecompressor().decompress(frame) == part
    return result


def small(part: bytes) -> bytes:
    return deflate(Codec.ZSTD, memoryview(part))


def test_what_costs_few_bytes_is_quick_for_all_batches() -> None:
    parts = [numbers() for _ in range(80)]
    for frame, part in zip(frames(*parts), parts, strict=True):
        assert frame != small(part)
        assert len(frame) <= 1.25 * len(small(part))


def test_text_is_never_quick() -> None:
    parts = [text() for _ in range(80)]
    assert frames(*parts) == [small(part) for part in parts]


@pytest.mark.parametrize(("before", "after"), [(numbers, text), (text, numbers)])
def test_another_kind_of_batches_is_noticed(before: Callable[[], bytes], after: Callable[[], bytes]) -> None:
    parts = [before(), *(after() for _ in range(80))]
    last = frames(*parts)[-1]
    assert (last == small(parts[-1])) == (after is text)


@pytest.mark.parametrize("part", [b"", b"a", bytes(300_000), b"ab" * 200_000])
def test_batches_of_any_size(part: bytes) -> None:
    frames(part, part)


@pytest.mark.parametrize("of", [numbers, text])
def test_encoded_batches_have_the_same_records(of: Callable[[], bytes]) -> None:
    values = [of() for _ in range(3)]
    batches = b"".join(
        build([Record(value=value)], base_offset=offset, codec="zstd") for offset, value in enumerate(values)
    )
    records = decode_batches(batches, start_offset=0, end_offset=3).records
    encoder = BatchEncoder(records, zstd=Zstd())
    encoded = encoder.write(0, len(encoder))
    again = decode_batches(bytes(encoded.data), start_offset=0, end_offset=3).records
    assert again == records
    assert again.column("value").to_pylist() == values
    assert {value & CODEC for value in again.column("attributes").to_pylist()} == {Codec.ZSTD}
    sizes = [len(encoded.batch(index)) for index in range(3)]
    plain = [len(batch) for batch in (build([Record(value=value)], codec="none") for value in values)]
    assert all(size < most for size, most in zip(sizes, plain, strict=True))
