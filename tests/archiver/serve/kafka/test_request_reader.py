"""Stated lengths of requests aren't trusted."""

from __future__ import annotations

import struct
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.serial import entity_reader

from archiver.errors import BadRequest
from archiver.serve.kafka.apis import APIS
from archiver.serve.kafka.frames import head_of, request_of
from archiver.serve.kafka.request_reader import MOST_ELEMENTS, FrameBytes, reader_of
from archiver.serve.security import OpenDoor, Session
from tests.support.servers.served_lake import request, written

VERSIONS = [(api.key, version) for api in APIS.values() for version in range(api.least, api.most + 1)]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_request_is_read_as_kio_reads_it(api_key: int, version: int) -> None:
    kind = load_request_schema(api_key, version)
    message = request(api_key, version)
    data = written(message)
    theirs, size = entity_reader(kind)(data, 0)
    mine = FrameBytes(data)
    assert reader_of(kind)(mine) == theirs == message
    assert (mine.left, size) == (0, len(data))


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_a_frame_that_ends_early_is_refused(api_key: int, version: int) -> None:
    kind = load_request_schema(api_key, version)
    data = written(request(api_key, version))
    for end in range(len(data)):
        with pytest.raises(BadRequest):
            reader_of(kind)(FrameBytes(data[:end]))


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
        reader_of(load_request_schema(3, version))(FrameBytes(frame + b"\0" * 8))


@pytest.mark.parametrize(
    ("millis", "kept"),
    [(-1, timedelta(milliseconds=-1)), (2**63 - 1, timedelta(999_999_999)), (-(2**63), timedelta(-999_999_999))],
)
def test_offsets_may_be_kept_for_ever(millis: int, kept: timedelta) -> None:
    data = written(request(8, 2, retention_time=timedelta(milliseconds=7)))
    mine = FrameBytes(data.replace(struct.pack(">q", 7), struct.pack(">q", millis)))
    assert reader_of(load_request_schema(8, 2))(mine).retention_time == kept


def test_an_array_may_be_null_and_its_elements_not() -> None:
    data = written(request(32, 1, configuration_keys=("key",)))
    read = reader_of(load_request_schema(32, 1))
    key = struct.pack(">ih", 1, 3) + b"key"
    assert read(FrameBytes(data.replace(key, struct.pack(">i", -1)))).resources[0].configuration_keys is None
    with pytest.raises(BadRequest, match="null"):
        read(FrameBytes(data.replace(key, struct.pack(">ih", 1, -1))))


@given(st.sampled_from(VERSIONS), st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(which: tuple[int, int], data: bytes) -> None:
    try:
        reader_of(load_request_schema(*which))(FrameBytes(data))
    except BadRequest:
        return


def test_unknown_tags_are_skipped() -> None:
    kind = load_request_schema(3, 12)
    data = written(request(3, 12))
    assert data.endswith(b"\0")
    assert reader_of(kind)(FrameBytes(data[:-1] + b"\x01\x63\x02hi")) == request(3, 12)


def metadata(topics: int) -> bytes:
    return struct.pack(">i", topics) + b"\0\0" * topics + b"\0"


def test_a_request_has_only_so_many_elements() -> None:
    read = reader_of(load_request_schema(3, 4))
    assert len(read(FrameBytes(metadata(MOST_ELEMENTS))).topics) == MOST_ELEMENTS, "clients may ask for as many"
    with pytest.raises(BadRequest, match="too many elements"):
        read(FrameBytes(metadata(MOST_ELEMENTS + 1)))


def test_elements_of_nested_arrays_and_tags_count_together() -> None:
    read = reader_of(load_request_schema(2, 7))
    data = written(request(2, 7))
    size = next(number for number in range(100) if fits(read, data, number))
    assert size >= 2, "a topic and a partition of it, at least"
    tags = b"\x03" + b"\x63\x02hi" * 3
    assert data.endswith(b"\0")
    assert fits(read, data[:-1] + tags, size + 3)
    assert not fits(read, data[:-1] + tags, size + 2)


def fits(read: Any, data: bytes, most_elements: int) -> bool:
    try:
        read(FrameBytes(data, most_elements))
    except BadRequest:
        return False
    return True


def test_who_is_not_known_yet_may_send_few_tags() -> None:
    def asked(tags: int, session: Session) -> Any:
        frame = struct.pack(">hhih", 18, 3, 1, -1) + bytes([tags]) + b"\x05\0" * tags + b"\x02a\x02b\0"
        client: Any = SimpleNamespace(login=session)
        return request_of(head_of(frame), frame, client)

    stranger = Session(mechanisms=None, access_of=lambda _: pytest.fail("nobody is known"), principal=None)
    assert asked(64, stranger).body == asked(100, OpenDoor().session(None)).body
    with pytest.raises(BadRequest, match="too many elements"):
        asked(65, stranger)
