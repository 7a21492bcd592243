"""Decides where rows are split into row groups and pages.

pyarrow checks a page's size only after each slice that it gets, and after every `write_batch_size` values of a slice.
So rows are sliced so that neither adds more than `SLICE_BYTES` of one column. This keeps every page within 1 MiB,
whatever the sizes are and however they change within a file. A value larger than a slice may still come after up to
`PAGE_LIMIT` bytes of other values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PAGE_BYTES = 1 << 20
SLICE_BYTES = PAGE_BYTES // 4
PAGE_LIMIT = PAGE_BYTES - SLICE_BYTES
"""pyarrow's `data_page_size`: pyarrow closes a page that has reached it."""
VALUES_PER_CHECK = 2048
"""pyarrow's `write_batch_size`: how many values pyarrow writes between two checks of the page's size."""


def page_slices(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Slice `rows` so that pages stay within 1 MiB, or within PAGE_LIMIT and one value."""
    if rows.nbytes <= SLICE_BYTES:
        return [rows]
    heavy = [column for column in _row_aligned(rows.columns) if not _fits(column)]
    if not heavy:
        return [rows]
    return [rows.slice(start, length) for start, length in _cuts(heavy, 0, rows.num_rows)]


def halves(rows: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Slice `rows` into parts of at most `limit` bytes of Arrow data, or of one row."""
    if rows.nbytes <= limit or rows.num_rows <= 1:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from halves(rows.slice(0, middle), limit)
    yield from halves(rows.slice(middle), limit)


def _cuts(columns: list[pa.Array], start: int, length: int) -> Iterator[tuple[int, int]]:
    if length <= 1 or all(_fits(column.slice(start, length)) for column in columns):
        yield start, length
        return
    half = length // 2
    yield from _cuts(columns, start, half)
    yield from _cuts(columns, start + half, length - half)


def _row_aligned(columns: list[pa.Array]) -> Iterator[pa.Array]:
    """The columns of variable-width values with one entry a row. Structs are opened, lists and maps are not."""
    for column in columns:
        if pa.types.is_struct(column.type):
            yield from _row_aligned([column.field(index) for index in range(column.type.num_fields)])
        elif _is_list(column.type) or _is_binary(column.type):
            yield column


def _fits(column: pa.Array) -> bool:
    return all(_is_light(offsets) for offsets in _value_offsets(column))


def _is_light(offsets: npt.NDArray[np.signedinteger]) -> bool:
    """Whether no run of VALUES_PER_CHECK values has more than SLICE_BYTES.

    It checks aligned runs. Any run lies within two of them, so each may have half the limit.
    """
    if offsets[-1] - offsets[0] <= SLICE_BYTES:
        return True
    bounds = np.append(offsets[:-1:VALUES_PER_CHECK], offsets[-1])
    return bool(np.diff(bounds).max() <= SLICE_BYTES // 2)


def _value_offsets(column: pa.Array) -> Iterator[npt.NDArray[np.signedinteger]]:
    """The offsets of every variable-width leaf in `column`."""
    kind = column.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _value_offsets(column.field(index))
    elif _is_list(kind):
        offsets = _offsets(column)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        children = (column.keys, column.items) if pa.types.is_map(kind) else (column.values,)
        for child in children:
            yield from _value_offsets(child.slice(first, count))
    elif _is_binary(kind):
        yield _offsets(column)


def _offsets(column: pa.Array) -> npt.NDArray[np.signedinteger]:
    kind = column.type
    is_wide = pa.types.is_large_list(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    buffer = column.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(1, np.int64)
    width: type[np.signedinteger] = np.int64 if is_wide else np.int32
    return np.frombuffer(buffer, width)[column.offset : column.offset + len(column) + 1]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    )
