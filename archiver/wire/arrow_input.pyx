# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Opens Arrow columns of records for the kernels that read them."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import pyarrow as pa


cdef uint8_t* _address(object buffer) except? NULL:
    return NULL if buffer is None else <uint8_t*><uint64_t>buffer.address


cdef uint8_t* numbers(object column, int64_t rows, object kind, int width, bint nulls=False) except? NULL:
    """The address of a column's numbers. ValueError for another type or length, and for nulls without `nulls`."""
    if column.type != kind or (column.null_count and not nulls) or len(column) != rows:
        raise ValueError(
            f"expected {rows} values of {kind}{'' if nulls else ' and no null'}, got {len(column)} of {column.type}"
        )
    return _address(column.buffers()[1]) + width * <int64_t>column.offset if rows else NULL


cdef uint8_t* bits(object column):
    """The address of a column's validity bits; the first one is at the column's offset. NULL if all values are valid."""
    return _address(column.buffers()[0])


cdef ByteColumn byte_column(object column, int64_t rows) except *:
    """Open a binary column. ValueError if it is another type or length."""
    cdef ByteColumn found
    if column.type != pa.binary() or len(column) != rows:
        raise ValueError(f"expected {rows} values of binary, got {len(column)} of {column.type}")
    valid, end, data = column.buffers()
    found.first_bit = column.offset
    found.end = <const int32_t*>_address(end) + (found.first_bit if rows else 0)
    found.data = _address(data)
    found.size = 0 if data is None else data.size
    found.valid = _address(valid)
    return found


cdef HeaderColumn header_column(object column, int64_t rows) except *:
    """Open a column of headers: lists of structs of two binaries, key and value. ValueError if it isn't one."""
    cdef HeaderColumn found
    if not pa.types.is_list(column.type) or column.null_count or len(column) != rows:
        raise ValueError(f"expected {rows} lists of headers and no null, got {len(column)} of {column.type}")
    entries = column.values
    if not pa.types.is_struct(entries.type) or entries.type.num_fields != 2 or entries.null_count:
        raise ValueError(f"expected headers of key and value and none of them null, got {entries.type}")
    found.count = len(entries)
    found.end = <const int32_t*>numbers(column.offsets, rows + 1, pa.int32(), 4)
    found.key = byte_column(entries.field(0), found.count)
    found.value = byte_column(entries.field(1), found.count)
    return found
