# cython: language_level=3
"""What a footer says of a column chunk, added up page by page: statistics, sizes, the column and the offset index.

Ids are those of parquet.thrift.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from archiver.storage.parquet.columns.compact_output cimport Fields, begin, binary, end, head, listed, number, truth
from archiver.storage.parquet.columns.extremes cimport (
    Extremes, forget, is_exact, merge, order_of, put_bound,
)
from archiver.storage.parquet.columns.form cimport BYTE_ARRAY, BY_BYTES, BY_DECIMAL, Form
from archiver.storage.parquet.columns.growing_bytes cimport (
    Bytes, extend, put, put_byte, put_varint, put_zigzag, release,
)
from archiver.storage.parquet.columns.page cimport Page
from archiver.storage.parquet.columns.walk cimport DEEPEST, Path
from archiver.storage.parquet.compact_bytes cimport BINARY, FALSE, I32, I64, STRUCT, TRUE

cdef enum:                  # BoundaryOrder
    UNORDERED = 0
    ASCENDING = 1
    DESCENDING = 2


cdef struct PagePlace:
    int64_t offset          # behind the dictionary page
    int64_t size            # with the header
    int64_t first_row
    int64_t text_bytes


cdef struct ChunkTotals:
    int64_t rows
    int64_t entries
    int64_t nulls
    int64_t text_bytes
    int64_t pages
    int64_t dictionary_pages    # data pages by dictionary: they come first
    int64_t size                # of data pages with their headers
    int64_t unpacked
    bint is_indexed             # whether each page that isn't null has extremes
    bint is_ascending
    bint is_descending
    Extremes extremes
    Extremes last               # of the page before that isn't null
    Bytes places                # PagePlace[pages]
    Bytes null_pages            # parts of the column index, as Thrift has them in lists
    Bytes lows
    Bytes highs
    Bytes null_counts
    Bytes page_repeated
    Bytes page_defined
    Bytes spare
    int64_t repeated[DEEPEST + 1]
    int64_t defined[2 * DEEPEST + 1]


cdef inline void start_totals(ChunkTotals* totals, bint is_indexed) noexcept nogil:
    totals.rows = totals.entries = totals.nulls = totals.text_bytes = 0
    totals.pages = totals.dictionary_pages = totals.size = totals.unpacked = 0
    totals.is_indexed = is_indexed
    totals.is_ascending = totals.is_descending = True
    forget(&totals.extremes)
    forget(&totals.last)
    totals.places.size = totals.null_pages.size = totals.lows.size = totals.highs.size = 0
    totals.null_counts.size = totals.page_repeated.size = totals.page_defined.size = 0
    memset(totals.repeated, 0, sizeof(totals.repeated))
    memset(totals.defined, 0, sizeof(totals.defined))


cdef inline void give_back_totals(ChunkTotals* totals) noexcept nogil:
    release(&totals.places)
    release(&totals.null_pages)
    release(&totals.lows)
    release(&totals.highs)
    release(&totals.null_counts)
    release(&totals.page_repeated)
    release(&totals.page_defined)
    release(&totals.spare)


cdef inline int64_t _count(const uint8_t* levels, int64_t entries, uint8_t level) noexcept nogil:
    cdef int64_t found = 0, index
    for index in range(entries):
        found += levels[index] == level
    return found


cdef inline int _add_histogram(
    Bytes* out, int64_t* totals, const uint8_t* levels, int64_t entries, int highest, bint are_highest
) except -1 nogil:
    cdef int level
    cdef int64_t found, left = entries
    for level in range(highest + 1):
        if level == highest:
            found = left
        else:
            found = 0 if are_highest else _count(levels, entries, <uint8_t>level)
        left -= found
        totals[level] += found
        put_zigzag(out, found)
    return 0


cdef inline int _add_bounds(ChunkTotals* totals, const Page* page, const Form* form) except -1 nogil:
    """Add a page's extremes to the column index. A page of nulls has empty ones."""
    cdef const Extremes* extremes = &page.extremes
    put_byte(&totals.null_pages, FALSE if page.values else TRUE)
    if not page.values:
        put_byte(&totals.lows, 0)
        return put_byte(&totals.highs, 0)
    if not (
        _put_bound(&totals.lows, &totals.spare, form, extremes, False)
        and _put_bound(&totals.highs, &totals.spare, form, extremes, True)
    ):
        totals.is_indexed = False
        return 0
    if not (is_exact(form, extremes, False) and is_exact(form, extremes, True)):
        totals.is_ascending = totals.is_descending = False      # bounds that are cut needn't be in the order of values
    elif totals.last.are_set:
        totals.is_ascending = (
            totals.is_ascending
            and order_of(form, &totals.last, extremes, False) <= 0 and order_of(form, &totals.last, extremes, True) <= 0
        )
        totals.is_descending = (
            totals.is_descending
            and order_of(form, &totals.last, extremes, False) >= 0 and order_of(form, &totals.last, extremes, True) >= 0
        )
    totals.last = extremes[0]
    return 0


cdef inline int _put_bound(
    Bytes* out, Bytes* spare, const Form* form, const Extremes* extremes, bint is_high
) except -1 nogil:
    """Put a bound behind its size. 0 if there is none."""
    spare.size = 0
    if not put_bound(spare, form, extremes, is_high):
        return 0
    put_varint(out, spare.size)
    put(out, spare.data, spare.size)
    return 1


cdef inline int _put_bound_field(
    Fields* fields, int identifier, Bytes* spare, const Form* form, const Extremes* extremes, bint is_high
) except -1 nogil:
    """Put a bound as a field. 0 if there is none."""
    spare.size = 0
    if not put_bound(spare, form, extremes, is_high):
        return 0
    binary(fields, identifier, spare.data, spare.size)
    return 1


cdef inline int add_page(
    ChunkTotals* totals, const Page* page, const Form* form, const Path* path, int64_t size, int64_t unpacked
) except -1 nogil:
    """Add a finished page, of so many bytes with its header; `unpacked` is its size without compression."""
    cdef PagePlace* place = <PagePlace*>extend(&totals.places, sizeof(PagePlace))
    place.offset, place.size = totals.size, size
    place.first_row, place.text_bytes = totals.rows, page.text_bytes
    if totals.is_indexed:
        _add_bounds(totals, page, form)
    put_zigzag(&totals.null_counts, page.entries - page.values)
    if path.repeated:
        _add_histogram(
            &totals.page_repeated, totals.repeated, page.repeated.data, page.entries, path.repeated, False
        )
    if path.defined:
        _add_histogram(
            &totals.page_defined, totals.defined, page.defined.data, page.entries, path.defined, not page.has_levels
        )
    merge(&totals.extremes, form, &page.extremes)
    totals.rows += page.rows
    totals.entries += page.entries
    totals.nulls += page.entries - page.values
    totals.text_bytes += page.text_bytes
    totals.size += size
    totals.unpacked += unpacked
    totals.pages += 1
    return 0


cdef inline int put_column_index(Bytes* out, const ChunkTotals* totals, const Path* path) except -1 nogil:
    cdef Fields fields = begin(out)
    listed(&fields, 1, TRUE, totals.pages)
    put(out, totals.null_pages.data, totals.null_pages.size)
    listed(&fields, 2, BINARY, totals.pages)
    put(out, totals.lows.data, totals.lows.size)
    listed(&fields, 3, BINARY, totals.pages)
    put(out, totals.highs.data, totals.highs.size)
    number(&fields, 4, I32, ASCENDING if totals.is_ascending else DESCENDING if totals.is_descending else UNORDERED)
    listed(&fields, 5, I64, totals.pages)
    put(out, totals.null_counts.data, totals.null_counts.size)
    if path.repeated:
        listed(&fields, 6, I64, totals.pages * (path.repeated + 1))
        put(out, totals.page_repeated.data, totals.page_repeated.size)
    if path.defined:
        listed(&fields, 7, I64, totals.pages * (path.defined + 1))
        put(out, totals.page_defined.data, totals.page_defined.size)
    return end(&fields)


cdef inline int put_offset_index(
    Bytes* out, const ChunkTotals* totals, const Form* form, int64_t start
) except -1 nogil:
    """`start` is where the first data page is in the file."""
    cdef const PagePlace* places = <const PagePlace*>totals.places.data
    cdef Fields fields = begin(out), place
    cdef int64_t index
    listed(&fields, 1, STRUCT, totals.pages)
    for index in range(totals.pages):
        place = begin(out)
        number(&place, 1, I64, start + places[index].offset)
        number(&place, 2, I32, places[index].size)
        number(&place, 3, I64, places[index].first_row)
        end(&place)
    if form.type == BYTE_ARRAY:
        listed(&fields, 2, I64, totals.pages)
        for index in range(totals.pages):
            put_zigzag(out, places[index].text_bytes)
    return end(&fields)


cdef inline int put_statistics(Bytes* out, ChunkTotals* totals, const Form* form) except -1 nogil:
    """Statistics. Numbers are there for readers of the fields from before there was an order of columns, too."""
    cdef Fields fields = begin(out)
    cdef bint has_low, has_high
    if form.order != BY_BYTES and form.order != BY_DECIMAL:
        _put_bound_field(&fields, 1, &totals.spare, form, &totals.extremes, True)
        _put_bound_field(&fields, 2, &totals.spare, form, &totals.extremes, False)
    number(&fields, 3, I64, totals.nulls)
    has_high = _put_bound_field(&fields, 5, &totals.spare, form, &totals.extremes, True)
    has_low = _put_bound_field(&fields, 6, &totals.spare, form, &totals.extremes, False)
    if has_high:
        truth(&fields, 7, is_exact(form, &totals.extremes, True))
    if has_low:
        truth(&fields, 8, is_exact(form, &totals.extremes, False))
    return end(&fields)


cdef inline int put_size_statistics(
    Bytes* out, const ChunkTotals* totals, const Form* form, const Path* path
) except -1 nogil:
    cdef Fields fields = begin(out)
    cdef int level
    if form.type == BYTE_ARRAY:
        number(&fields, 1, I64, totals.text_bytes)
    if path.repeated:
        listed(&fields, 2, I64, path.repeated + 1)
        for level in range(path.repeated + 1):
            put_zigzag(out, totals.repeated[level])
    if path.defined:
        listed(&fields, 3, I64, path.defined + 1)
        for level in range(path.defined + 1):
            put_zigzag(out, totals.defined[level])
    return end(&fields)
