"""Judges of the archiver's Parquet files, by Arrow's footers and by the rows (`shredded_rows`)."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.footer_check import askable_chunks
from archiver.storage.parquet.footer_chunks import FooterChunks
from archiver.storage.parquet.page_checks import are_as_written
from tests.support.storage import parquet_layout as at
from tests.support.storage.parquet_layout import Chunk, Layout, Page
from tests.support.storage.parquet_reads import INDEX_KEY, without_index
from tests.support.storage.shredded_rows import LONGEST_BOUND, Column, is_text, shredded

PAGE_ROWS: Final = 20_000
PAGE_BYTES: Final = (1 << 20) + 64
"""A mebibyte of values, and short runs of levels."""
PAIRS: Final = {"writer": "test", "empty": ""}
CREATED_BY: Final = re.compile(r"\S.* version \S+.*")
"""As Java's reader parses it: by a writer that it can't make out, it takes bounds of texts for wrong."""

_RATE: Final = 0.01
_CHECKSUM_BYTES: Final = 12
_RLE: Final = 3
_DEPRECATED: Final = {1: 5, 2: 6}
"""Bounds from before each column had an order, and their replacements."""
_EXACT: Final = {5: 7, 6: 8}
"""Bounds, and whether a value has just this one."""
CUT_BOUND: Final = 64
"""Bytes of bounds of values that are too long to be stored."""
_ORDERS: Final = {"unordered": 0, "ascending": 1, "descending": 2}
_FORCED: Final = {Encoding.DIFFERENCES: "DELTA_BINARY_PACKED", Encoding.SHARED_STARTS: "DELTA_BYTE_ARRAY"}


class Writer(Protocol):
    def write(self, batches: Sequence[pa.RecordBatch]) -> None: ...

    def close(self, pairs: Mapping[str, str]) -> pq.FileMetaData: ...


class WriterClass(Protocol):
    def __call__(
        self, sink: pa.NativeFile, schema: pa.Schema, plans: Sequence[ColumnPlan], *, sorted_by: Sequence[int] = ()
    ) -> Writer: ...


Groups: TypeAlias = Sequence[Sequence[pa.RecordBatch]]


def arrow_options(plans: Sequence[ColumnPlan], sorted_by: Sequence[int] = ()) -> dict[str, Any]:
    compressed = {plan.leaf.path: plan.level for plan in plans if plan.level is not None}
    filters = {plan.leaf.path: _filter_options(plan.filter_size) for plan in plans if plan.filter_size}
    return {
        "version": "2.6",
        "compression": {plan.leaf.path: "zstd" if plan.leaf.path in compressed else "none" for plan in plans},
        "compression_level": compressed,
        "use_dictionary": [plan.leaf.path for plan in plans if plan.encoding is Encoding.DICTIONARY],
        "column_encoding": {plan.leaf.path: _FORCED[plan.encoding] for plan in plans if plan.encoding in _FORCED},
        "write_statistics": [plan.leaf.path for plan in plans if plan.has_statistics],
        "write_page_index": True,
        "write_page_checksum": True,
        "sorting_columns": [pq.SortingColumn(index) for index in sorted_by] or None,
        "store_schema": False,
        "bloom_filter_options": filters or None,
    }


def _filter_options(size: int) -> dict[str, Any]:
    return {"ndv": int(-0.75 * size * math.log(1 - _RATE ** (1 / 8))), "fpp": _RATE}


class ArrowWriter:
    def __init__(
        self, sink: pa.NativeFile, schema: pa.Schema, plans: Sequence[ColumnPlan], *, sorted_by: Sequence[int] = ()
    ) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(sink, schema, **arrow_options(plans, sorted_by))

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, self._schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self, pairs: Mapping[str, str]) -> pq.FileMetaData:
        self._writer.add_key_value_metadata(dict(pairs))
        self._writer.close()
        return self._writer.writer.metadata


def written(
    writer: WriterClass, schema: pa.Schema, groups: Groups, plans: Sequence[ColumnPlan], sorted_by: Sequence[int] = ()
) -> bytes:
    sink = pa.BufferOutputStream()
    making = writer(sink, schema, plans, sorted_by=sorted_by)
    for batches in groups:
        making.write(batches)
    returned = making.close(PAIRS)
    data = bytes(sink.getvalue())
    assert returned.equals(pq.read_metadata(io.BytesIO(data))), "close() returned other metadata than the file has"
    return data


def judge(
    ours: bytes,
    arrows: bytes,
    tables: Sequence[pa.Table],
    plans: Sequence[ColumnPlan],
    *,
    by_arrow: bool = False,
) -> None:
    """Arrow's files may have larger pages, and other bounds."""
    page_bytes = math.inf if by_arrow else PAGE_BYTES
    our, their = Layout(ours), Layout(arrows)
    judge_footer(our, their)
    judge_places(our)
    judge_own_checks(our, their)
    for result, expected, table in zip(our.chunks, their.chunks, tables, strict=True):
        for chunk, value, column, plan in zip(result, expected, shredded(table), plans, strict=True):
            judge_chunk(chunk, value, column, plan)
            judge_statistics(chunk, column, plan, by_arrow=by_arrow)
            judge_pages(chunk, column, plan)
            judge_offset_index(chunk, column, page_bytes)
            judge_column_index(chunk, column, plan, by_arrow=by_arrow)
            judge_filter(chunk, value, plan)


def judge_footer(ours: Layout, arrows: Layout) -> None:
    assert ours.data[:4] == ours.data[-4:] == at.MAGIC
    assert ours.schema == arrows.schema, "another schema than Arrow's"
    assert ours.metadata.schema.equals(arrows.metadata.schema)
    columns = [without_index(file.metadata.schema.to_arrow_schema()) for file in (ours, arrows)]
    assert columns[0].equals(columns[1], check_metadata=True)
    existing = {field: arrows.footer.get(field) for field in (1, 3, 7)}
    assert {field: ours.footer.get(field) for field in (1, 3, 7)} == existing, "version, rows or orders differ"
    pairs = [pair for pair in ours.footer[5] if pair[1] != INDEX_KEY]
    assert pairs == arrows.footer[5]
    assert {pair[1].decode(): pair[2].decode() for pair in pairs} == PAIRS
    assert CREATED_BY.fullmatch(ours.footer[6].decode()), ours.footer[6]
    assert set(ours.footer) == set(arrows.footer)
    assert len(ours.groups) == len(arrows.groups)
    for number, (group, second) in enumerate(zip(ours.groups, arrows.groups, strict=True)):
        chunks = ours.chunks[number]
        assert set(group) == set(second)
        assert group[at.GROUP_ROWS] == second[at.GROUP_ROWS]
        assert group.get(at.SORTING) == second.get(at.SORTING), "sorted by other columns"
        assert group[at.GROUP_BYTES] == sum(chunk.metadata[at.UNPACKED_SIZE] for chunk in chunks)
        assert group[at.GROUP_SIZE] == sum(chunk.metadata[at.SIZE] for chunk in chunks)
        assert group[at.GROUP_OFFSET] == chunks[0].start
        assert group.get(at.ORDINAL, number) == number


def judge_places(ours: Layout) -> None:
    spans = sorted(span for chunks in ours.chunks for chunk in chunks for span in chunk.spans())
    assert ours.end.footer_start is not None
    begin = ours.end.footer_start - (_CHECKSUM_BYTES if ours.end.check("the file") else 0)
    index = [bytes(pair[2]).split(b":") for pair in ours.footer.get(5, []) if pair[1] == INDEX_KEY]
    blobs = [(int(start), int(start) + int(size), "sets and checksums") for start, size, _ in index]
    spans = [(0, len(at.MAGIC), "magic"), *spans, *blobs, (begin, len(ours.data), "footer")]
    for (_, end, value), (start, _, second) in pairwise(spans):
        assert start == end, (value, second, "overlap" if start < end else "a gap")
    indexes = [start for start, _, part in spans if part.startswith("index")]
    pages = [start for start, _, part in spans if part.startswith("pages")]
    assert max(pages, default=0) < min(indexes, default=len(ours.data)), "indexes come after all pages"


def judge_own_checks(ours: Layout, arrows: Layout) -> None:
    chunks = askable_chunks(ours.end.footer)
    assert chunks == askable_chunks(arrows.end.footer) == b"\1" * len(chunks)
    for group in range(len(ours.groups)):
        for index in range(ours.metadata.num_columns):
            if _is_vouched(arrows, group, index):
                assert _is_vouched(ours, group, index), (ours.chunks[group][index].name, "isn't vouched for")


def _is_vouched(file: Layout, group: int, index: int) -> bool:
    chunk = FooterChunks(FileEnd.read(io.BytesIO(file.data))).column(group, index)
    pages = memoryview(file.data)[chunk.start : chunk.start + chunk.size]
    return are_as_written(pages, chunk, file.metadata.schema.column(index))


def judge_chunk(ours: Chunk, arrows: Chunk, column: Column, plan: ColumnPlan) -> None:
    name, result, expected = ours.name, ours.metadata, arrows.metadata
    for field in (at.TYPE, at.PATH, at.CODEC, at.NUM_VALUES):
        assert result.get(field) == expected.get(field), (name, field, result.get(field), expected.get(field))
    ours_say, arrows_say = (item.get(at.STATISTICS, {}) for item in (result, expected))
    for old, new in _DEPRECATED.items():
        assert ours_say.get(old) in (None, ours_say.get(new)), (name, "a deprecated bound differs")
        assert old not in ours_say or old in arrows_say, (name, "a deprecated bound of values that it has no order for")
    without = _DEPRECATED.keys() | ({*_EXACT, *_EXACT.values()} if column.has_nan or column.is_cut else set())
    said, theirs = ({f: v for f, v in item.items() if f not in without} for item in (ours_say, arrows_say))
    assert said == theirs, (name, "statistics", said, theirs)
    sizes, theirs = _sizes(result), _sizes(expected)
    if plan.encoding is Encoding.SHARED_STARTS:  # Arrow leaves out texts that are equal to the one before
        theirs[1] = sizes[1]
    assert sizes == theirs, (name, "size statistics", sizes, theirs)
    optional = {at.DICTIONARY_PAGE, at.SIZE_STATISTICS}
    assert set(result) - optional == set(expected) - optional, (name, "other fields than Arrow's")
    assert ours.said.get(1) is None
    assert ours.said.get(2) == arrows.said.get(2), (name, "file_offset")
    assert at.DICTIONARY_PAGE not in result or result[at.DICTIONARY_PAGE] < result[at.DATA_PAGE]
    assert bool(result.get(at.DICTIONARY_PAGE)) == bool(expected.get(at.DICTIONARY_PAGE)), (name, "a dictionary")


def _sizes(metadata: Mapping[int, Any]) -> dict[int, Any]:
    return {field: value for field, value in metadata.get(at.SIZE_STATISTICS, {}).items() if value != []}


def judge_statistics(ours: Chunk, column: Column, plan: ColumnPlan, *, by_arrow: bool = False) -> None:
    result, metadata = ours.metadata.get(at.STATISTICS), ours.metadata
    assert metadata[at.NUM_VALUES] == len(column.values)
    if not plan.has_statistics:
        assert result is None, (ours.name, "statistics that nobody asked for")
    else:
        assert result is not None
        said = {field: value for field, value in result.items() if field not in _DEPRECATED}
        assert said.pop(3) == column.nulls, (ours.name, "nulls")
        bounds = None if column.has_nan and not by_arrow else column.bounds
        assert bounds is not None or not result.keys() & _DEPRECATED.keys(), (ours.name, "a deprecated bound")
        for number, extreme in zip((6, 5), bounds or (), strict=False):
            bound, is_exact = said.pop(number, None), said.pop(_EXACT[number], None)
            if len(extreme) <= LONGEST_BOUND:
                assert (bound, is_exact) == (extreme, True), (ours.name, column.type, extreme)
            else:
                assert is_exact is (None if bound is None else False), (ours.name, "a bound that is cut")
                judge_cut(ours.name, column, bound, extreme, is_high=number == 5, by_arrow=by_arrow)
        assert said == {}, (ours.name, column.type, said)
    _judge_sizes(ours.name, metadata.get(at.SIZE_STATISTICS, {}), column)


def judge_cut(name: str, column: Column, bound: bytes | None, extreme: bytes, *, is_high: bool, by_arrow: bool) -> None:
    """An extreme of the highest bytes may lack an upper bound."""
    if by_arrow or not is_text(column.type) or (bound is None and is_high and extreme.startswith(b"\xff" * CUT_BOUND)):
        assert bound is None, (name, "a bound of a value that is too long")
        return
    assert bound is not None, (name, "no bound of a long value")
    assert len(bound) <= CUT_BOUND + 1, (name, "a bound that isn't short")
    assert bound > extreme if is_high else extreme.startswith(bound), (name, bound)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        bound.decode()


def _judge_sizes(name: str, found: Mapping[int, Any], column: Column) -> None:
    assert found.get(1) == column.text_bytes, (name, "bytes of texts")
    assert found.get(2, []) == column.repetition_histogram, (name, "repetition levels")
    assert found.get(3, []) == column.definition_histogram, (name, "definition levels")


def judge_pages(ours: Chunk, column: Column, plan: ColumnPlan) -> None:
    name, pages, metadata = ours.name, ours.pages, ours.metadata
    assert pages[-1].end == ours.start + metadata[at.SIZE] if pages else metadata[at.SIZE] == 0
    assert sum(page.size for page in pages) == metadata[at.SIZE], name
    assert sum(page.unpacked_size for page in pages) == metadata[at.UNPACKED_SIZE], name
    assert [page.is_dictionary for page in pages[1:]] == [False] * len(pages[1:])
    if ours.data_pages:
        assert ours.data_pages[0].start == metadata[at.DATA_PAGE], name
    for page in pages:
        _judge_page(ours, page, plan)
    assert sum(page.details[1] for page in ours.data_pages) == len(column.values), name
    counter = Counter((page.header[1], page.details[2]) for page in pages)
    said = {(value[1], value[2]): value[3] for value in metadata[at.ENCODING_STATS]}
    assert said == counter, (name, "encoding stats", said, counter)
    assert len(metadata[at.ENCODING_STATS]) == len(said)
    encodings = {encoding for _, encoding in counter} | {_RLE}
    assert set(metadata[at.ENCODINGS]) == encodings, (name, metadata[at.ENCODINGS], encodings)
    _judge_choice(ours, plan)


def judge_filter(ours: Chunk, arrows: Chunk, plan: ColumnPlan) -> None:
    """Arrow folds small filters."""
    if not plan.filter_size:
        assert ours.filter is None, (ours.name, "a filter that nobody asked for")
        return
    (header, bits), (theirs, fewer) = ours.filter_parts, arrows.filter_parts
    assert header == theirs | {1: len(bits)}, (ours.name, header)
    assert len(bits) == plan.filter_size or ours.filter == arrows.filter, (ours.name, "a filter of another size")
    while len(bits) > len(fewer):
        bits = _folded(bits)
    assert bits == fewer, (ours.name, "another bloom filter than Arrow's")


def _folded(bits: bytes) -> bytes:
    blocks = np.frombuffer(bits, np.uint8).reshape(-1, 2, 32)
    return (blocks[:, 0] | blocks[:, 1]).tobytes()


def _judge_page(ours: Chunk, page: Page, plan: ColumnPlan) -> None:
    name, header = ours.name, page.header
    body = ours.data[page.body_start : page.end]
    assert header[1] in (0, 2), (name, "a page of another kind")
    assert zlib.crc32(body) == header[4] & 0xFFFFFFFF, (name, "checksum")
    if plan.level is None:
        assert header[2] == header[3]
    else:
        assert len(pa.decompress(body, header[2], "zstd", asbytes=True)) == header[2], (name, "unpacked size")
    if not page.is_dictionary:
        assert (page.details[3], page.details[4]) == (_RLE, _RLE)


def _judge_choice(ours: Chunk, plan: ColumnPlan) -> None:
    """An abandoned dictionary isn't resumed."""
    result = [page.details[2] for page in ours.data_pages]
    planned = plan.encoding
    if planned is Encoding.DICTIONARY and ours.metadata[at.TYPE] == 0:
        planned = Encoding.PLAIN
    if planned is Encoding.DICTIONARY:
        assert result == sorted(result, reverse=True), (ours.name, result)
        assert set(result) <= {Encoding.DICTIONARY, Encoding.PLAIN}, (ours.name, result)
        assert ours.pages[0].details[2] == Encoding.PLAIN
    else:
        assert set(result) <= {planned}, (ours.name, result)
        assert not any(page.is_dictionary for page in ours.pages)


def page_parts(ours: Chunk, column: Column) -> list[Column]:
    parts, start = [], 0
    for page in ours.data_pages:
        parts.append(column.part(start, start + page.details[1]))
        start += page.details[1]
    return parts


def judge_offset_index(ours: Chunk, column: Column, page_bytes: float = PAGE_BYTES) -> None:
    index, pages, name = ours.index(at.OFFSET_INDEX), ours.data_pages, ours.name
    assert index is not None, (name, "no offset index")
    row, texts = 0, []
    assert len(index[1]) == len(pages), name
    for position, page, part in zip(index[1], pages, page_parts(ours, column), strict=True):
        assert (position[1], position[2]) == (page.start, page.size), (name, "a page lies elsewhere")
        assert position[3] == row, (name, "another first row")
        assert part.repetition[0] == 0, (name, "a page begins within a row")
        rows = part.repetition.count(0)
        assert rows <= PAGE_ROWS, (name, "too many rows in a page")
        assert rows == 1 or page.header[2] <= page_bytes, (name, "too large a page", page.header[2], rows)
        row += rows
        texts.append(part.text_bytes)
    assert index.get(2) == (texts if texts and texts[0] is not None else None), (name, "bytes of texts")


def judge_column_index(ours: Chunk, column: Column, plan: ColumnPlan, *, by_arrow: bool = False) -> None:
    """If a page with values has no bounds, there must be no index."""
    index, name = ours.index(at.COLUMN_INDEX), ours.name
    parts = page_parts(ours, column)
    bounds = [None if part.has_nan and not by_arrow else part.bounds for part in parts]
    nulls = [part.nulls == len(part.values) for part in parts]
    can_cut = is_text(column.type) and not by_arrow
    lacks = any(
        value is None or (max(map(len, value)) > LONGEST_BOUND and not can_cut)
        for null, value in zip(nulls, bounds, strict=True)
        if not null
    )
    if not plan.has_statistics or lacks:
        assert index is None, (name, "an index without bounds")
        return
    if any(bound and len(bound[1]) > LONGEST_BOUND and bound[1].startswith(b"\xff" * CUT_BOUND) for bound in bounds):
        assert index is None, (name, "no text is above that of a page")
        return
    assert index is not None, (name, "no column index")
    existing = [bound for bound in bounds if bound is not None]
    expected = {
        1: nulls,
        2: _expected(ours, column, index[2], [bound and bound[0] for bound in bounds], is_high=False),
        3: _expected(ours, column, index[3], [bound and bound[1] for bound in bounds], is_high=True),
        4: _ORDERS["unordered" if any(p.is_cut for p in parts) else _order(column, existing)] if existing else index[4],
        5: [part.nulls for part in parts],
        6: [count for part in parts for count in part.repetition_histogram],
        7: [count for part in parts for count in part.definition_histogram],
    }
    assert index[4] in _ORDERS.values()
    result = {6: [], 7: []} | index
    for field, value in expected.items():
        assert result.get(field) == value, (name, "column index", field, result.get(field), value)
    assert set(result) == set(expected)


def _expected(
    ours: Chunk, column: Column, found: Sequence[bytes], extremes: Sequence[bytes | None], *, is_high: bool
) -> list[bytes]:
    expected = [extreme or b"" for extreme in extremes]
    for position, (bound, extreme) in enumerate(zip(found, expected, strict=True)):
        if len(extreme) > LONGEST_BOUND:
            judge_cut(ours.name, column, bound, extreme, is_high=is_high, by_arrow=False)
            expected[position] = bound
    return expected


def _order(column: Column, bounds: Sequence[tuple[bytes, bytes]]) -> str:
    low, high = ([column.comparable(end) for end in ends] for ends in zip(*bounds, strict=True))
    if all(value <= second for ends in (low, high) for value, second in pairwise(ends)):
        return "ascending"
    if all(value >= second for ends in (low, high) for value, second in pairwise(ends)):
        return "descending"
    return "unordered"
