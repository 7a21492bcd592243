# cython: language_level=3
"""A data page that is being filled (version 1): levels and values of whole rows, and the bytes that they become."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from archiver.storage.parquet.columns.differences cimport put_differences
from archiver.storage.parquet.columns.extremes cimport Extremes, forget
from archiver.storage.parquet.columns.form cimport AS_DECIMALS, BOOLEAN, Form, decimal_at, decimal_bytes
from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put, put_byte, put_zeros, release
from archiver.storage.parquet.columns.runs cimport bits_for, put_run, put_runs
from archiver.storage.parquet.columns.texts cimport Text
from archiver.storage.parquet.columns.walk cimport ALIVE, Path, Walk

cdef enum:                  # encodings, in parquet.thrift
    PLAIN = 0
    RUNS = 3
    DIFFERENCES = 5
    SHARED_STARTS = 7
    IN_DICTIONARY = 8


cdef struct Page:
    int encoding
    int64_t rows
    int64_t entries
    int64_t values          # entries that have a value
    int64_t text_bytes
    bint has_levels         # else all entries have the highest definition level
    Bytes defined           # uint8_t[entries]
    Bytes repeated          # uint8_t[entries]
    Bytes places            # uint32_t[values]: IN_DICTIONARY
    Bytes numbers           # int64_t[values]: DIFFERENCES
    Bytes shared            # int64_t[values]: SHARED_STARTS, how many bytes are the one's before
    Bytes rests             # int64_t[values]: SHARED_STARTS, how many follow
    Bytes body              # PLAIN; SHARED_STARTS, the bytes that follow
    Text before             # SHARED_STARTS
    Extremes extremes


cdef inline void start_page(Page* page, int encoding) noexcept nogil:
    page.encoding = encoding
    page.rows = page.entries = page.values = page.text_bytes = 0
    page.has_levels = False
    forget(&page.extremes)
    page.defined.size = page.repeated.size = page.places.size = page.numbers.size = 0
    page.shared.size = page.rests.size = page.body.size = page.before.size = 0


cdef inline void give_back_page(Page* page) noexcept nogil:
    release(&page.defined)
    release(&page.repeated)
    release(&page.places)
    release(&page.numbers)
    release(&page.shared)
    release(&page.rests)
    release(&page.body)


cdef inline int64_t gathered_bytes(const Page* page) noexcept nogil:
    """About as many bytes as the page takes, or more."""
    return page.body.size + page.places.size + page.numbers.size + page.shared.size + page.repeated.size


cdef inline int add_levels(Page* page, const Walk* walk, const Path* path) except -1 nogil:
    """Add the levels of a walk's entries."""
    cdef int64_t index
    cdef uint8_t highest = <uint8_t>path.defined
    cdef uint8_t* to
    cdef const uint8_t* defined = walk.defined.data
    if path.repeated:
        put(&page.repeated, walk.repeated.data, walk.entries)
    if walk.alive < walk.entries and not page.has_levels:
        memset(extend(&page.defined, page.entries), highest, <size_t>page.entries)
        page.has_levels = True
    if page.has_levels:
        to = extend(&page.defined, walk.entries)
        if walk.has_levels:
            for index in range(walk.entries):
                to[index] = highest if defined[index] == ALIVE else defined[index]
        else:
            memset(to, highest, <size_t>walk.entries)
    page.entries += walk.entries
    page.values += walk.alive
    return 0


cdef inline int add_plain_numbers(Page* page, const Form* form, const int64_t* numbers, int64_t count) except -1 nogil:
    """Add numbers. Booleans take a bit each, the lowest first; `values` already counts these."""
    cdef int64_t index, first
    cdef uint8_t* to
    if form.type == BOOLEAN:
        first = page.values - count
        put_zeros(&page.body, ((page.values + 7) >> 3) - page.body.size)
        for index in range(count):
            page.body.data[(first + index) >> 3] |= <uint8_t>(numbers[index] << ((first + index) & 7))
        return 0
    if form.width == 8:
        return put(&page.body, numbers, count * 8)
    to = extend(&page.body, count * 4)
    for index in range(count):
        (<uint32_t*>to)[index] = <uint32_t>numbers[index]
    return 0


cdef inline int put_plain(Bytes* out, const Form* form, Text view) except -1 nogil:
    """A text behind its size, or a value of so many bytes."""
    cdef uint32_t size = <uint32_t>view.size
    cdef uint8_t* to
    if form.memory == AS_DECIMALS:
        decimal_bytes(decimal_at(view.at), form.width, extend(out, form.width))
        return 0
    if form.width:
        return put(out, view.at, form.width)
    to = extend(out, view.size + 4)
    memcpy(to, &size, 4)
    memcpy(to + 4, view.at, <size_t>view.size)
    return 0


cdef inline int add_shared_start(Page* page, Text text) except -1 nogil:
    """Add a text without what it shares with the one before."""
    cdef int64_t most = min(text.size, page.before.size), shared = 0
    while shared + 8 <= most and not memcmp(text.at + shared, page.before.at + shared, 8):
        shared += 8
    while shared < most and text.at[shared] == page.before.at[shared]:
        shared += 1
    (<int64_t*>extend(&page.shared, 8))[0] = shared
    (<int64_t*>extend(&page.rests, 8))[0] = text.size - shared
    page.before = text
    return put(&page.body, text.at + shared, text.size - shared)


cdef inline int _put_levels(
    Bytes* out, const uint8_t* levels, int64_t count, int highest, bint are_highest
) except -1 nogil:
    """Levels behind the size of their runs, in 4 bytes."""
    cdef int64_t start
    cdef uint32_t size
    cdef int bits = bits_for(highest)
    put_zeros(out, 4)
    start = out.size
    if are_highest:
        put_run(out, highest, count, bits)
    else:
        put_runs(out, levels, count, bits)
    size = <uint32_t>(out.size - start)
    memcpy(out.data + start - 4, &size, 4)
    return 0


cdef inline int put_page(
    Bytes* out, const Page* page, const Path* path, const Form* form, int64_t distinct
) except -1 nogil:
    """The page's bytes, before they are compressed. `distinct` is how many values the dictionary has by now."""
    cdef int bits
    if path.repeated:
        _put_levels(out, page.repeated.data, page.entries, path.repeated, False)
    if path.defined:
        _put_levels(out, page.defined.data, page.entries, path.defined, not page.has_levels)
    if page.encoding == IN_DICTIONARY:
        bits = max(1, bits_for(max(distinct - 1, 0)))
        put_byte(out, <uint8_t>bits)
        return put_runs(out, <const uint32_t*>page.places.data, page.values, bits)
    if page.encoding == DIFFERENCES:
        return put_differences(out, <const int64_t*>page.numbers.data, page.values, form.width == 4)
    if page.encoding == SHARED_STARTS:
        put_differences(out, <const int64_t*>page.shared.data, page.values, True)
        put_differences(out, <const int64_t*>page.rests.data, page.values, True)
    return put(out, page.body.data, page.body.size)
