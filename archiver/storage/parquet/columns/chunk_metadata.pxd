# cython: language_level=3
"""A chunk's ColumnMetaData in the footer. Ids are those of parquet.thrift."""

from libc.stdint cimport int64_t

from archiver.storage.parquet.columns.chunk_totals cimport ChunkTotals, put_statistics
from archiver.storage.parquet.columns.compact_output cimport Fields, begin, end, head, listed, number
from archiver.storage.parquet.columns.form cimport Form
from archiver.storage.parquet.columns.growing_bytes cimport Bytes, put, put_varint, put_zigzag
from archiver.storage.parquet.columns.page cimport IN_DICTIONARY, PLAIN, RUNS
from archiver.storage.parquet.columns.page_header cimport DATA_PAGE, DICTIONARY_PAGE
from archiver.storage.parquet.compact_bytes cimport BINARY, I32, I64, STRUCT

cdef enum:                  # CompressionCodec
    UNCOMPRESSED = 0
    ZSTD = 6

cdef enum:
    BEFORE_FILTER = 13      # the id of the last field that `put_metadata` writes


cdef struct ChunkPlace:     # where a chunk is in its file, and how it is stored
    int encoding
    bint is_compressed
    bint has_statistics
    int64_t start
    int64_t data_start      # behind the dictionary, if there is one
    int64_t end


cdef inline int _put_count(Bytes* out, int kind, int encoding, int64_t pages) except -1:
    """How many pages of a kind have an encoding."""
    cdef Fields fields = begin(out)
    number(&fields, 1, I32, kind)
    number(&fields, 2, I32, encoding)
    number(&fields, 3, I32, pages)
    return end(&fields)


cdef inline int put_metadata(
    Bytes* out, const ChunkPlace* place, ChunkTotals* totals, const Form* form, tuple names
) except -1:
    """The fields of ColumnMetaData that come before its bloom filter."""
    cdef Fields fields = begin(out)
    cdef int64_t plain = totals.pages - totals.dictionary_pages
    cdef bint has_dictionary = place.data_start > place.start
    cdef bytes name
    number(&fields, 1, I32, form.type)
    listed(&fields, 2, I32, 2 + has_dictionary + (has_dictionary and plain > 0))
    if has_dictionary:
        put_zigzag(out, PLAIN)
    put_zigzag(out, RUNS)
    put_zigzag(out, IN_DICTIONARY if has_dictionary else place.encoding)
    if has_dictionary and plain:
        put_zigzag(out, PLAIN)
    listed(&fields, 3, BINARY, len(names))
    for name in names:
        put_varint(out, len(name))
        put(out, <const char*>name, len(name))
    number(&fields, 4, I32, ZSTD if place.is_compressed else UNCOMPRESSED)
    number(&fields, 5, I64, totals.entries)
    number(&fields, 6, I64, totals.unpacked)
    number(&fields, 7, I64, place.end - place.start)
    number(&fields, 9, I64, place.data_start)
    if has_dictionary:
        number(&fields, 11, I64, place.start)
    if place.has_statistics:
        head(&fields, 12, STRUCT)
        put_statistics(out, totals, form)
    listed(&fields, BEFORE_FILTER, STRUCT, has_dictionary + (totals.dictionary_pages > 0) + (plain > 0))
    if has_dictionary:
        _put_count(out, DICTIONARY_PAGE, PLAIN, 1)
    if totals.dictionary_pages:
        _put_count(out, DATA_PAGE, IN_DICTIONARY, totals.dictionary_pages)
    if plain:
        _put_count(out, DATA_PAGE, PLAIN if has_dictionary else place.encoding, plain)
    return 0
