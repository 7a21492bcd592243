"""Column chunks, and which were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyiceberg.table import Table

from tests.support.storage.counting_proxy import Read


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    size: int
    groups: tuple[dict[str, tuple[int, int]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    files: int
    groups: int
    kilobytes: int


def layout_of(table: Table) -> tuple[DataFile, ...]:
    result = []
    for task in table.scan().plan_files():
        with table.io.new_input(task.file.file_path).open() as stream:
            footer = pq.ParquetFile(stream).metadata
        url = urlsplit(task.file.file_path)
        result.append(
            DataFile(
                path=f"/{url.netloc}{url.path}",
                size=task.file.file_size_in_bytes,
                groups=tuple(_chunks(footer.row_group(number)) for number in range(footer.num_row_groups)),
            )
        )
    return tuple(sorted(result, key=lambda file: file.path))


def _chunks(group: pq.RowGroupMetaData) -> dict[str, tuple[int, int]]:
    return {item.path_in_schema: _pages(item) for item in map(group.column, range(group.num_columns))}


def _pages(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return chunk.data_page_offset, first + chunk.total_compressed_size


def touched(files: Sequence[DataFile], reads: Iterable[Read], columns: Sequence[str]) -> Touched:
    """Row groups count if pages of a column were read.

    Footers are read with bytes before them: such reads count only if they begin before the last row group.
    """
    by_path: dict[str, list[Read]] = {}
    for item in reads:
        by_path.setdefault(item.path, []).append(item)
    opened = [(file, by_path[file.path]) for file in files if file.path in by_path]
    return Touched(
        files=len(opened),
        groups=sum(
            any(_covers(file, read, group[name]) for read in result for name in columns)
            for file, result in opened
            for group in file.groups
        ),
        kilobytes=round(sum(distinct(result) for _, result in opened) / 1_000),
    )


def _covers(file: DataFile, read: Read, pages: tuple[int, int]) -> bool:
    first, end = pages
    of_footer = read.end == file.size and read.start > min(start for start, _ in file.groups[-1].values())
    return not of_footer and read.start < end and read.end > first


def distinct(reads: Iterable[Read]) -> int:
    total = at = 0
    for item in sorted(reads, key=lambda read: read.start):
        total += max(0, item.end - max(at, item.start))
        at = max(at, item.end)
    return total
