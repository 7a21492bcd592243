"""Classifies keys and values of a few records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.setup.spread_samples import shares

_PARTITIONS: Final = 3
_FETCH_BYTES: Final = 1 << 18
_MOST_BYTES: Final = 64 << 20
_ENVELOPE_BYTES: Final = 6
_SINGLE_OBJECT: Final = b"\xc3\x01"
_SINGLE_OBJECT_BYTES: Final = 10
_VARINT_BYTES: Final = 10
_LAST_FIELD: Final = (1 << 29) - 1
_FIXED: Final = {1: 8, 5: 4}


class Look(StrEnum):
    """Worded for a comment."""

    NULL = "null"
    EMPTY = "empty"
    REGISTRY = "begin like the envelope of a schema registry"
    SINGLE_OBJECT = "begin like Avro's single-object encoding"
    JSON = "look like JSON"
    TEXT = "look like text"
    PROTOBUF = "could be Protobuf"
    OTHER = "are other bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    looks: Counter[Look]
    schema_ids: tuple[int, ...] = ()
    fields: tuple[int, ...] = ()

    @property
    def all_look(self) -> Look | None:
        """Nulls don't count. None if looks differ, or there are none."""
        looks = {look for look in self.looks if look is not Look.NULL}
        return looks.pop() if len(looks) == 1 else None

    @property
    def has_bytes(self) -> bool:
        """Whether some have no known form, and none is in an envelope or a text."""
        return bool(self.looks[Look.OTHER]) and not self.looks.keys() - {Look.NULL, Look.OTHER, Look.PROTOBUF}

    @classmethod
    def of(cls, found: Sequence[bytes | None]) -> Sampled:
        looks = [look_of(value) for value in found]
        ids = {
            int.from_bytes(value[1:5], "big")
            for value, look in zip(found, looks, strict=True)
            if value is not None and look is Look.REGISTRY
        }
        fields = {
            number
            for value, look in zip(found, looks, strict=True)
            if value is not None and look is Look.PROTOBUF
            for number in protobuf_fields(value) or ()
        }
        return cls(looks=Counter(looks), schema_ids=tuple(sorted(ids)), fields=tuple(sorted(fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRecords:
    """`records` have the columns of `archiver.wire.RECORDS`."""

    partition: int
    records: pa.RecordBatch


def sample(brokers: BrokerClient, topic: str, most: int) -> tuple[Sampled, Sampled]:
    """Raises the errors of BrokerClient and PartitionFetcher."""
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for recent in recent_records(brokers, topic, most):
        keys += recent.records.column("key").to_pylist()
        values += recent.records.column("value").to_pylist()
    return Sampled.of(keys), Sampled.of(values)


def recent_records(brokers: BrokerClient, topic: str, most: int) -> Iterator[RecentRecords]:
    """Raises the errors of BrokerClient and the fetch."""
    described = brokers.described(topic)
    starts = brokers.list_offsets(topic, described.partitions, "earliest")
    ends = brokers.list_offsets(topic, described.partitions, "latest_stable")
    fullest = sorted(described.partitions, key=lambda number: starts[number] - ends[number])[:_PARTITIONS]
    sizes = {partition: ends[partition] - starts[partition] for partition in fullest}
    left = _MOST_BYTES
    for partition, count in shares(sizes, most).items():
        missing = count
        start = max(starts[partition], ends[partition] - count)
        fetcher = PartitionFetcher(brokers, topic, described.topic_id, partition)
        with closing(fetcher.batches(start, ends[partition], cut_head=True, max_bytes=_FETCH_BYTES)) as pieces:  # type: ignore[type-var]
            for piece in pieces:
                rows = piece.records.slice(0, missing)
                missing -= rows.num_rows
                left -= rows.nbytes
                yield RecentRecords(partition=partition, records=rows)
                if left <= 0:
                    return
                if missing <= 0:
                    break


def look_of(data: bytes | None) -> Look:
    if data is None:
        return Look.NULL
    if not data:
        return Look.EMPTY
    if look := _envelope(data):
        return look
    if data.lstrip()[:1] in {b"{", b"["} and _is_json(data):
        return Look.JSON
    if _is_text(data):
        return Look.TEXT
    return Look.PROTOBUF if protobuf_fields(data) else Look.OTHER


def _envelope(data: bytes) -> Look | None:
    if data[0] == 0 and len(data) >= _ENVELOPE_BYTES and 0 < int.from_bytes(data[1:5], "big") < 1 << 31:
        return Look.REGISTRY
    return Look.SINGLE_OBJECT if data.startswith(_SINGLE_OBJECT) and len(data) >= _SINGLE_OBJECT_BYTES else None


def protobuf_fields(data: bytes) -> frozenset[int] | None:
    """None if the bytes can't be a message. Groups aren't supported."""
    position, fields = 0, set[int]()
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if position < 0 or not 0 < number <= _LAST_FIELD:
            return None
        if kind in _FIXED:
            position += _FIXED[kind]
        elif kind in {0, 2}:
            length, position = _varint(data, position)
            if position < 0:
                return None
            position += length if kind else 0
        else:
            return None
        fields.add(number)
    return frozenset(fields) if position == len(data) else None


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[place : place + _VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a varint
            return value, place + count + 1
    return 0, -1


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)
