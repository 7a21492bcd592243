"""Requests are read as kio reads them, and no length that a frame states is believed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.serial import entity_reader

from archiver.errors import BadRequest
from archiver.serve.kafka.apis import APIS
from archiver.serve.kafka.request_reader import Bytes, reader_of
from tests.support.servers.served_lake import request, written

VERSIONS = [(api.key, version) for api in APIS.values() for version in range(api.least, api.most + 1)]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_request_is_read_as_kio_reads_it(api_key: int, version: int) -> None:
    kind = load_request_schema(api_key, version)
    message = request(api_key, version)
    data = written(message)
    theirs, size = entity_reader(kind)(data, 0)
    mine = Bytes(data)
    assert reader_of(kind)(mine) == theirs == message
    assert (mine.left, size) == (0, len(data))


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_a_frame_that_ends_early_is_refused(api_key: int, version: int) -> None:
    kind = load_request_schema(api_key, version)
    data = written(request(api_key, version))
    for end in range(len(data)):
        with pytest.raises(BadRequest):
            reader_of(kind)(Bytes(data[:end]))


@pytest.mark.parametrize(
    ("version", "frame"),
    [
        (4, struct.pack(">i", 2**31 - 1)),
        (4, struct.pack(">ih", 1, 30_000)),
        (4, struct.pack(">ih", 1, 2) + b"\xff\xfe\0"),
        (12, b"\xff\xff\xff\xff\x0f"),
        (12, b"\xff\xff\xff\xff\xff\x0f"),
        (12, b"\x01\0\0" + b"\xff\xff\xff\xff\x0f"),
        (12, b"\x01\0\0\x01\x05\xff\xff\xff\xff\x07"),
    ],
    ids=["array", "text", "not UTF-8", "compact array", "endless number", "tags", "tag"],
)
def test_lengths_beyond_the_frame_are_refused(version: int, frame: bytes) -> None:
    with pytest.raises(BadRequest):
        reader_of(load_request_schema(3, version))(Bytes(frame + b"\0" * 8))


@given(st.sampled_from(VERSIONS), st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(which: tuple[int, int], data: bytes) -> None:
    try:
        reader_of(load_request_schema(*which))(Bytes(data))
    except BadRequest:
        return


def test_unknown_tags_are_skipped() -> None:
    kind = load_request_schema(3, 12)
    data = written(request(3, 12))
    assert data.endswith(b"\0")
    assert reader_of(kind)(Bytes(data[:-1] + b"\x01\x63\x02hi")) == request(3, 12)
