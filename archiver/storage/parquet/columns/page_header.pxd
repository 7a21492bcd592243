# cython: language_level=3
"""The headers of pages. Ids are those of parquet.thrift."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from archiver.storage.parquet.columns.compact_output cimport Fields, begin, end, head, number, truth
from archiver.storage.parquet.columns.growing_bytes cimport Bytes
from archiver.storage.parquet.columns.page cimport PLAIN, RUNS
from archiver.storage.parquet.compact_bytes cimport I32, STRUCT

cdef enum:                  # PageType
    DATA_PAGE = 0
    DICTIONARY_PAGE = 2

cdef enum:
    HEADER_BYTES = 64       # no header has more


cdef struct Sizes:          # of a page: as it is, and as it is stored; and the CRC of what is stored
    int64_t plain
    int64_t stored
    uint32_t checksum


cdef inline Fields _begin(Bytes* out, int kind, Sizes sizes) except *:
    cdef Fields fields = begin(out)
    number(&fields, 1, I32, kind)
    number(&fields, 2, I32, sizes.plain)
    number(&fields, 3, I32, sizes.stored)
    number(&fields, 4, I32, <int32_t>sizes.checksum)
    return fields


cdef inline int put_data_header(Bytes* out, Sizes sizes, int64_t entries, int encoding) except -1:
    cdef Fields fields = _begin(out, DATA_PAGE, sizes), inner
    head(&fields, 5, STRUCT)
    inner = begin(out)
    number(&inner, 1, I32, entries)
    number(&inner, 2, I32, encoding)
    number(&inner, 3, I32, RUNS)
    number(&inner, 4, I32, RUNS)
    end(&inner)
    return end(&fields)


cdef inline int put_dictionary_header(Bytes* out, Sizes sizes, int64_t values) except -1:
    cdef Fields fields = _begin(out, DICTIONARY_PAGE, sizes), inner
    head(&fields, 7, STRUCT)
    inner = begin(out)
    number(&inner, 1, I32, values)
    number(&inner, 2, I32, PLAIN)
    truth(&inner, 3, False)
    end(&inner)
    return end(&fields)
