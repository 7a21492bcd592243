"""A Parquet file's footer, pages and indexes, as dicts by the ids in parquet.thrift."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow.parquet as pq

from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.thrift_reader import read_struct

MAGIC: Final = b"PAR1"

# By their ids in parquet.thrift: of ColumnMetaData,
TYPE, ENCODINGS, PATH, CODEC, NUM_VALUES, UNPACKED_SIZE, SIZE = range(1, 8)
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, STATISTICS, ENCODING_STATS = range(9, 14)
FILTER_OFFSET, FILTER_LENGTH, SIZE_STATISTICS = 14, 15, 16
# of ColumnChunk,
OFFSET_INDEX, COLUMN_INDEX = (4, 5), (6, 7)
# of RowGroup.
GROUP_COLUMNS, GROUP_BYTES, GROUP_ROWS, SORTING, GROUP_OFFSET, GROUP_SIZE, ORDINAL = range(1, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    start: int
    body_start: int
    end: int
    header: dict[int, Any]

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def unpacked_size(self) -> int:
        return self.body_start - self.start + int(self.header[2])

    @property
    def is_dictionary(self) -> bool:
        return bool(self.header[1] == 2)

    @property
    def details(self) -> dict[int, Any]:
        result: dict[int, Any] = self.header[7 if self.is_dictionary else 5]
        return result


@dataclass(frozen=True)
class Chunk:
    data: bytes
    said: dict[int, Any]

    @cached_property
    def metadata(self) -> dict[int, Any]:
        result: dict[int, Any] = self.said[3]
        return result

    @property
    def name(self) -> str:
        return ".".join(part.decode() for part in self.metadata[PATH])

    @property
    def start(self) -> int:
        return int(self.metadata.get(DICTIONARY_PAGE) or self.metadata[DATA_PAGE])

    @cached_property
    def pages(self) -> list[Page]:
        result, at = [], self.start
        end = at + self.metadata[SIZE]
        while at < end:
            fields, body = read_struct(memoryview(self.data), at)
            header = plain(fields)
            result.append(Page(start=at, body_start=body, end=body + header[3], header=header))
            at = body + header[3]
        return result

    @property
    def data_pages(self) -> list[Page]:
        return [page for page in self.pages if not page.is_dictionary]

    def index(self, which: tuple[int, int]) -> dict[int, Any] | None:
        if which[0] not in self.said:
            return None
        start, length = (self.said[field] for field in which)
        fields, end = read_struct(memoryview(self.data), start)
        assert end == start + length, (self.name, which, "the index has another length than the footer says")
        result: dict[int, Any] = plain(fields)
        return result

    @property
    def filter(self) -> bytes | None:
        start = self.metadata.get(FILTER_OFFSET)
        return None if start is None else self.data[start : start + self.metadata[FILTER_LENGTH]]

    @property
    def filter_parts(self) -> tuple[dict[int, Any], bytes]:
        assert self.filter is not None, (self.name, "no filter")
        header, end = read_struct(memoryview(self.filter))
        return plain(header), self.filter[end:]

    def spans(self) -> Iterator[tuple[int, int, str]]:
        yield self.start, self.start + self.metadata[SIZE], f"pages of {self.name}"
        for which in (OFFSET_INDEX, COLUMN_INDEX):
            if which[0] in self.said:
                yield self.said[which[0]], self.said[which[0]] + self.said[which[1]], f"index of {self.name}"
        if FILTER_OFFSET in self.metadata:
            start = self.metadata[FILTER_OFFSET]
            yield start, start + self.metadata[FILTER_LENGTH], f"filter of {self.name}"


@dataclass(frozen=True)
class Layout:
    data: bytes

    @cached_property
    def end(self) -> FileEnd:
        return FileEnd.read(io.BytesIO(self.data))

    @cached_property
    def footer(self) -> dict[int, Any]:
        fields, end = read_struct(self.end.footer)
        assert end == len(self.end.footer), "the footer has other bytes behind it"
        result: dict[int, Any] = plain(fields)
        return result

    @cached_property
    def metadata(self) -> pq.FileMetaData:
        return pq.read_metadata(io.BytesIO(self.data))

    @property
    def schema(self) -> list[dict[int, Any]]:
        result: list[dict[int, Any]] = self.footer[2]
        return result

    @property
    def groups(self) -> list[dict[int, Any]]:
        result: list[dict[int, Any]] = self.footer.get(4, [])
        return result

    @cached_property
    def chunks(self) -> list[list[Chunk]]:
        return [[Chunk(self.data, said) for said in group[GROUP_COLUMNS]] for group in self.groups]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: plain(item) for (field, _), item in value.items()}
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        _, listed = value
        return [plain(listed[at]) for at in range(len(listed))]
    return value
