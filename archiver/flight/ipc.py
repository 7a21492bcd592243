"""Arrow IPC messages of untrusted clients.

Kind and stated sizes of compressed buffers (format/Message.fbs) are checked before Arrow reads them,
`validate(full=True)` runs after.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Final

import pyarrow as pa

from archiver.errors import BadBatch

_MOST_HEADER_BYTES: Final = 64 << 10
"""The most bytes of the header of a few columns. Of four columns it has a few hundred."""
_MOST_FIELDS: Final = 256
_COLUMN_BYTES: Final = 512
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_ALIGNED: Final = 8
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_DICTIONARY_ID, _DICTIONARY_DATA, _IS_DELTA = 0, 1, 2
_MOST_DICTIONARY_BYTES: Final = 1 << 20
_KINDS: Final = {1: "a schema", 2: "a dictionary", 3: "a record batch", 4: "a tensor", 5: "a sparse tensor"}
_U32: Final = Struct("<I")
_I32: Final = Struct("<i")
_U16: Final = Struct("<H")
_I64: Final = Struct("<q")
_BUFFER: Final = Struct("<qq")
_HEADER_TYPE, _HEADER = 1, 2
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_FIELDS, _CHILDREN = 1, 5
_MOST_DEPTH: Final = 64
_ROW_BYTES: Final = 20
"""A timestamp, and offsets of key, value and headers."""
_LEAST_ROW_BYTES: Final = 4
"""A row of a batch has an offset of its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLimits:
    """The topic has `columns`."""

    columns: int = 0

    @property
    def fields(self) -> int:
        return _MOST_FIELDS + self.columns

    @property
    def size(self) -> int:
        return _MOST_HEADER_BYTES + _COLUMN_BYTES * self.columns


_FEW_COLUMNS: Final = HeaderLimits()


def read_schema(header: memoryview, limits: HeaderLimits = _FEW_COLUMNS) -> pa.Schema:
    """Raises BadBatch."""
    _check_kind(header, _SCHEMA, limits)
    _check_fields(header, limits)
    try:
        return pa.ipc.read_schema(pa.py_buffer(_encapsulated(header, b"")))
    except (pa.ArrowException, OSError, ValueError) as failure:
        raise BadBatch(f"the schema can't be read: {failure}") from None


def read_batch(
    header: memoryview,
    body: memoryview,
    schema: pa.Schema,
    *,
    most_bytes: int,
    limits: HeaderLimits = _FEW_COLUMNS,
    dictionaries: bytes = b"",
) -> pa.RecordBatch:
    """Raises BadBatch, also if the batch unpacks to more than `most_bytes`."""
    _check_kind(header, _BATCH, limits)
    unpacked = _unpacked_bytes(header, body)
    if unpacked > most_bytes:
        raise BadBatch(
            f"the batch unpacks to {unpacked:,} bytes, more than `flight.max_message_size` ({most_bytes:,}): send"
            " smaller batches"
        )
    try:
        message = _encapsulated(header, body)
        if dictionaries:
            batch = pa.ipc.open_stream(pa.py_buffer(dictionaries + message)).read_next_batch()
        else:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(message)), schema)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as failure:
        raise BadBatch(f"the batch is not valid Arrow data: {failure}") from None
    return batch


class StreamDictionaries:
    """The dictionaries of a stream, the newest of each column."""

    def __init__(self, schema: memoryview, limits: HeaderLimits) -> None:
        self._schema = _encapsulated(schema, b"")
        self._limits = limits
        self._messages: dict[int, bytes] = {}

    @staticmethod
    def has(header: memoryview) -> bool:
        """Raises BadBatch."""
        return _kind(header) == _DICTIONARY

    def add(self, header: memoryview, body: memoryview) -> None:
        """Raises BadBatch for changes of a dictionary, and if all dictionaries need more than 1 MiB."""
        _check_kind(header, _DICTIONARY, self._limits)
        try:
            dictionary = _Table(header, _U32.unpack_from(header, 0)[0]).table(_HEADER)
            if dictionary is None or dictionary.field(_IS_DELTA) is not None:
                raise BadBatch("a dictionary is sent in parts: send plain columns, or dictionaries as a whole")
            position = dictionary.field(_DICTIONARY_ID)
            number = 0 if position is None else _I64.unpack_from(header, position)[0]
        except (error, IndexError):
            raise BadBatch("the header of a dictionary can't be read") from None
        unpacked = _unpacked_bytes(header, body)
        self._messages[number] = _encapsulated(header, body)
        if max(unpacked, sum(map(len, self._messages.values()))) > _MOST_DICTIONARY_BYTES:
            raise BadBatch(f"the dictionaries need more than {_MOST_DICTIONARY_BYTES:,} bytes: send plain columns")

    @property
    def messages(self) -> bytes:
        """A stream's beginning. Empty without dictionaries."""
        return b"".join((self._schema, *self._messages.values())) if self._messages else b""


def kept_bytes(header: memoryview, body: memoryview, *, most_bytes: int, limits: HeaderLimits = _FEW_COLUMNS) -> int:
    """Estimate a batch's bytes in the log; 0 if too large for `read_batch`. Raises BadBatch."""
    _check_kind(header, _BATCH, limits)
    try:
        position = _Table(header, _U32.unpack_from(header, 0)[0]).table(_HEADER)
        length = None if position is None else position.field(_LENGTH)
        rows = 0 if length is None else _I64.unpack_from(header, length)[0]
    except (error, IndexError):
        raise BadBatch("the header of a record batch can't be read") from None
    unpacked = _unpacked_bytes(header, body)
    return 0 if unpacked > most_bytes else unpacked + _ROW_BYTES * min(max(rows, 0), unpacked // _LEAST_ROW_BYTES)


def _encapsulated(header: memoryview, body: memoryview | bytes) -> bytes:
    padding = b"\0" * (-(8 + len(header)) % _ALIGNED)
    return b"".join((_CONTINUATION, _U32.pack(len(header) + len(padding)), header, padding, body))


def _check_fields(header: memoryview, limits: HeaderLimits) -> None:
    """Raise BadBatch for too many or too deep fields: Arrow makes an object of each, also of repeated ones."""
    try:
        schema = _Table(header, _U32.unpack_from(header, 0)[0]).table(_HEADER)
        waiting = [] if schema is None else [(field, 1) for field in schema.tables(_FIELDS, most=limits.fields)]
        count = 0
        while waiting:
            field, depth = waiting.pop()
            count += 1
            waiting += [(child, depth + 1) for child in field.tables(_CHILDREN, most=limits.fields)]
            if count + len(waiting) > limits.fields or depth > _MOST_DEPTH:
                raise BadBatch(f"the schema has more than {limits.fields:,} fields, or is deeper than {_MOST_DEPTH}")
    except (error, IndexError):
        raise BadBatch("the header of a schema can't be read") from None


def _check_kind(header: memoryview, expected: int, limits: HeaderLimits) -> None:
    if len(header) > limits.size:
        raise BadBatch(f"the header of a message has {len(header):,} bytes, and may have {limits.size:,}")
    kind = _kind(header)
    if kind == expected:
        return
    hint = ": send plain columns instead of dictionaries" if kind == _DICTIONARY else ""
    raise BadBatch(f"{_KINDS[expected]} must come here, and {_KINDS.get(kind, 'something else')} came{hint}")


def _kind(header: memoryview) -> int:
    try:
        message = _Table(header, _U32.unpack_from(header, 0)[0])
        position = message.field(_HEADER_TYPE)
        return 0 if position is None else header[position]
    except (error, IndexError):
        raise BadBatch("the header of a message can't be read") from None


def _unpacked_bytes(header: memoryview, body: memoryview) -> int:
    """A compressed buffer begins with its size, or -1 if not compressed."""
    try:
        message = _Table(header, _U32.unpack_from(header, 0)[0])
        batch = message.table(_HEADER)
        if batch is not None and _kind(header) == _DICTIONARY:
            batch = batch.table(_DICTIONARY_DATA)
        if batch is None:
            raise BadBatch("the message has no record batch")
        if batch.field(_COMPRESSION) is None:
            return len(body)
        total = 0
        for offset, length in batch.structs(_BUFFERS, _BUFFER):
            if offset < 0 or length < 0 or offset + length > len(body):
                raise BadBatch("a buffer lies outside of the message")
            if length >= _I64.size:
                size = _I64.unpack_from(body, offset)[0]
                total += length if size == -1 else max(size, 0)
    except (error, IndexError):
        raise BadBatch("the header of a record batch can't be read") from None
    return total


class _Table:
    """Raises struct.error and IndexError outside of its bytes."""

    def __init__(self, data: memoryview, position: int) -> None:
        self._data = data
        self._position = position
        self._fields = position - _I32.unpack_from(data, position)[0]
        if self._fields < 0:
            raise IndexError
        self._size = _U16.unpack_from(data, self._fields)[0]

    def field(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot >= self._size:
            return None
        offset = _U16.unpack_from(self._data, self._fields + slot)[0]
        return self._position + offset if offset else None

    def table(self, number: int) -> _Table | None:
        position = self.field(number)
        return None if position is None else _Table(self._data, position + _U32.unpack_from(self._data, position)[0])

    def tables(self, number: int, *, most: int) -> list[_Table]:
        """A list of tables, without those beyond `most` + 1."""
        position = self.field(number)
        if position is None:
            return []
        start = position + _U32.unpack_from(self._data, position)[0]
        (count,) = _U32.unpack_from(self._data, start)
        places = range(start + 4, start + 4 + 4 * min(count, most + 1), 4)
        return [_Table(self._data, place + _U32.unpack_from(self._data, place)[0]) for place in places]

    def structs(self, number: int, kind: Struct) -> list[tuple[int, ...]]:
        position = self.field(number)
        if position is None:
            return []
        start = position + _U32.unpack_from(self._data, position)[0]
        (count,) = _U32.unpack_from(self._data, start)
        if start + 4 + count * kind.size > len(self._data):
            raise IndexError
        return [kind.unpack_from(self._data, start + 4 + index * kind.size) for index in range(count)]
