"""Says by their checksums alone whether the pages of a column are as they were written, without decoding them.

A page's checksum covers its bytes as they are stored, but not its header. So everything in a header that a reader goes
by is held against the footer and against the other pages. Where a doubt is left, the answer is no, and the column has
to be decoded: no column is called damaged here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import pyarrow.parquet as pq
from pyiceberg.io import InputStream

from archiver.storage.parquet.leaves import Leaf

RUN_BYTES: Final = 8 << 20
"""Chunks are read together up to so many bytes, or alone if they are larger."""
_HOLE_BYTES: Final = 64 << 10
"""What may lie between chunks that are read together."""

_Fields: TypeAlias = dict[int, Any]
_Chunks: TypeAlias = list[tuple[Leaf, pq.ColumnChunkMetaData]]

# What a page's header says, by its ids in parquet.thrift.
_KIND, _UNPACKED_SIZE, _SIZE, _CHECKSUM, _DATA, _DICTIONARY = 1, 2, 3, 4, 5, 7
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_VALUES, _ENCODING, _DEFINITION_LEVELS, _REPETITION_LEVELS = 1, 2, 3, 4

_PLAIN, _RLE, _BY_DICTIONARY = 0, 3, 8
_ENCODINGS: Final = {_PLAIN: "PLAIN", 5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""Encodings of data pages without a dictionary."""
_WIDTHS: Final = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_DEEPEST: Final = 3
_WORD_BITS: Final = 64


class _Doubtful(Exception):
    """Only decoding can tell."""


def doubtful(
    stream: InputStream, leaves: Iterable[Leaf], group: pq.RowGroupMetaData, schema: pq.ParquetSchema
) -> Iterator[Leaf]:
    """Read the pages of these columns of a row group. Return those columns that have to be decoded.

    Raises what the stream raises.
    """
    for run in _runs([(leaf, group.column(leaf.index)) for leaf in leaves]):
        start, end = _span(run[0][1])[0], _span(run[-1][1])[1]
        stream.seek(start)
        read = memoryview(stream.read(end - start))
        for leaf, chunk in run:
            first, last = _span(chunk)
            if not are_as_written(read[first - start : last - start], chunk, schema.column(leaf.index)):
                yield leaf


def are_as_written(pages: memoryview, chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema) -> bool:
    """Whether `pages`, the bytes of a column chunk, are certainly those that were written.

    `column` is what the file's schema says of the column.
    """
    try:
        return _Chunk(pages, chunk).is_as_written(column)
    except (_Doubtful, IndexError):
        return False


def _runs(chunks: _Chunks) -> Iterator[_Chunks]:
    """Chunks that lie near each other in the file."""
    run: _Chunks = []
    for each in sorted(chunks, key=lambda one: _span(one[1])):
        start, end = _span(each[1])
        if run and not (0 <= start - _span(run[-1][1])[1] <= _HOLE_BYTES and end - _span(run[0][1])[0] <= RUN_BYTES):
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _span(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where the pages of a chunk begin and end in the file."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


class _Chunk:
    """A column chunk whose pages are looked at one after the other."""

    def __init__(self, pages: memoryview, chunk: pq.ColumnChunkMetaData) -> None:
        self._pages = pages
        self._chunk = chunk
        self._codec, self._width = chunk.compression, _WIDTHS.get(chunk.physical_type)
        self._unpacked = self._values = 0
        self._encodings: set[int] = set()
        self._has_dictionary = False

    def is_as_written(self, column: pq.ColumnSchema) -> bool:
        """Whether all pages are, and are those that the footer tells of."""
        at = 0
        while at < len(self._pages):
            at = self._end_of_page(at)
        chunk = self._chunk
        return (
            chunk.physical_type == column.physical_type
            and self._values == chunk.num_values
            and self._unpacked == chunk.total_uncompressed_size
            and self._is_encoding_sure()
        )

    def _end_of_page(self, start: int) -> int:
        header, at = _struct(self._pages, start)
        size, unpacked = _number(header, _SIZE), _number(header, _UNPACKED_SIZE)
        page = self._pages[at : at + max(0, size)]
        if len(page) != size or zlib.crc32(page) != _number(header, _CHECKSUM) & 0xFFFFFFFF:
            raise _Doubtful
        self._check_packing(page, unpacked)
        kind = _number(header, _KIND)
        if kind == _DATA_PAGE and _DICTIONARY not in header:
            self._add_data(_fields(header, _DATA))
        elif kind == _DICTIONARY_PAGE and _DATA not in header and start == 0:
            self._add_dictionary(_fields(header, _DICTIONARY), unpacked)
        else:
            raise _Doubtful
        self._unpacked += at - start + unpacked
        return at + size

    def _check_packing(self, page: memoryview, unpacked: int) -> None:
        """Whether the page is packed as the footer says, and has the stated size unpacked."""
        is_right = len(page) == unpacked if self._codec == "UNCOMPRESSED" else _zstd_size(page) == unpacked
        if self._codec not in ("UNCOMPRESSED", "ZSTD") or not is_right:
            raise _Doubtful

    def _add_data(self, header: _Fields) -> None:
        if (_number(header, _DEFINITION_LEVELS), _number(header, _REPETITION_LEVELS)) != (_RLE, _RLE):
            raise _Doubtful
        self._values += _number(header, _VALUES)
        self._encodings.add(_number(header, _ENCODING))

    def _add_dictionary(self, header: _Fields, unpacked: int) -> None:
        # Of texts, only decoding tells how many there are.
        if self._width is None or _number(header, _VALUES) * self._width != unpacked:
            raise _Doubtful
        if _number(header, _ENCODING) != _PLAIN:
            raise _Doubtful
        self._has_dictionary = True

    def _is_encoding_sure(self) -> bool:
        """Whether the pages have the one encoding that they can have.

        The footer names all encodings of a chunk, and that of its dictionary. So it can't tell for pages of several.
        """
        if len(self._encodings) != 1:
            return False
        (encoding,) = self._encodings
        if self._has_dictionary:
            return encoding == _BY_DICTIONARY
        return _ENCODINGS.get(encoding, "") in self._chunk.encodings


def _zstd_size(frame: memoryview) -> int:
    """The size that a frame of zstd says it has unpacked; -1 if it doesn't say, or is none."""
    if bytes(frame[:4]) != _ZSTD_MAGIC:
        return -1
    described = frame[4]
    is_single, flag = described >> 5 & 1, described >> 6
    if described & 0b1011 or not (flag or is_single):  # reserved, or with a dictionary of its own
        return -1
    at, width = 5 + (not is_single), 1 << flag
    return int.from_bytes(frame[at : at + width], "little") + (256 if flag == 1 else 0)


def _number(fields: _Fields, identifier: int) -> int:
    found = fields.get(identifier)
    if type(found) is not int:
        raise _Doubtful
    return found


def _fields(fields: _Fields, identifier: int) -> _Fields:
    found = fields.get(identifier)
    if type(found) is not dict:
        raise _Doubtful
    return found


def _struct(data: memoryview, at: int, depth: int = 0) -> tuple[_Fields, int]:
    """Read a struct of Thrift's compact protocol. Return its fields by id, and where it ends.

    Bytes, and numbers of another width than a header's, are stepped over: they are in statistics.
    """
    if depth > _DEEPEST:
        raise _Doubtful
    fields: _Fields = {}
    identifier = 0
    while True:
        step = data[at]
        at += 1
        if step == 0:
            return fields, at
        if not step >> 4:  # an identifier of its own, which no header needs
            raise _Doubtful
        identifier += step >> 4
        match step & 15:
            case 1 | 2:
                fields[identifier] = step & 15 == 1
            case 5:
                number, at = _varint(data, at)
                fields[identifier] = (number >> 1) ^ -(number & 1)
            case 4 | 6:
                _, at = _varint(data, at)
            case 8:
                size, at = _varint(data, at)
                at += size
            case 12:
                fields[identifier], at = _struct(data, at, depth + 1)
            case _:
                raise _Doubtful


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, _WORD_BITS, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
    raise _Doubtful
