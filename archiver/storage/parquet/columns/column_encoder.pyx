# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Makes the pages of one column of a row group from Arrow's memory, and what the footer says of them.

Rows come in pieces, so that a page ends after `PAGE_ROWS` rows or with `PAGE_BYTES`, or after one row that takes more.
A dictionary that passes `DICTIONARY_BYTES` is given up, as Arrow and parquet-java do: its page comes first, then those
that were made by it, then plain ones.
"""

from os import urandom
from zlib import crc32

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT32_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from archiver.storage.parquet.columns.bloom_filter cimport FILTER_BLOCK, add_to_filter
from archiver.storage.parquet.columns.chunk_metadata cimport BEFORE_FILTER, ChunkPlace, put_metadata
from archiver.storage.parquet.columns.chunk_totals cimport (
    ChunkTotals, add_page, give_back_totals, put_column_index, put_offset_index, put_size_statistics, start_totals,
)
from archiver.storage.parquet.columns.compact_output cimport Fields, end, head, number
from archiver.storage.parquet.columns.dictionary cimport (
    Dictionary, give_back, place_of_text, place_of_word, restart,
)
from archiver.storage.parquet.columns.distinct cimport distinct_values
from archiver.storage.parquet.columns.extremes cimport see_numbers, see_view, see_word
from archiver.storage.parquet.columns.form cimport (
    AS_DECIMALS, AS_LARGE_TEXTS, AS_WORDS, BOOLEAN, BYTE_ARRAY, BY_NUMBER, DECIMAL_WIDTH, Form,
)
from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put, put_zeros, release
from archiver.storage.parquet.columns.page cimport (
    DIFFERENCES, IN_DICTIONARY, PLAIN, Page, SHARED_STARTS, add_levels, add_plain_numbers, add_shared_start,
    gathered_bytes, give_back_page, put_page, put_plain, start_page,
)
from archiver.storage.parquet.columns.page_header cimport (
    HEADER_BYTES, Sizes, put_data_header, put_dictionary_header,
)
from archiver.storage.parquet.columns.texts cimport Text
from archiver.storage.parquet.columns.values cimport take_numbers, take_texts
from archiver.storage.parquet.columns.walk cimport (
    AT_LEAF, DEEPEST, IN_STRUCT, Path, Step, Walk, give_back_walk, take_walk, weight,
)
from archiver.storage.parquet.compact_bytes cimport I32, I64, STRUCT
from schema_mapping.kernel.arrow cimport ArrowArray

cdef enum:
    PAGE_ROWS = 20000           # as in Arrow and parquet-java
    PAGE_BYTES = 1 << 20
    PIECE_ROWS = 2048
    PIECE_BYTES = 1 << 18
    DICTIONARY_BYTES = 1 << 20
    FLUSH_BYTES = 1 << 20


cdef class Rows:
    """The batches of a row group, by Arrow's C data interface."""

    cdef list _capsules
    cdef readonly int64_t rows

    def __init__(self, batches):
        held = list(batches)
        self._capsules = [batch.__arrow_c_array__()[1] for batch in held]
        self.rows = sum(batch.num_rows for batch in held)

    cdef ArrowArray* batch(self, Py_ssize_t index) except NULL:
        return <ArrowArray*>PyCapsule_GetPointer(self._capsules[index], "arrow_array")


cdef class Column:
    """One leaf column of a file: where it is in Arrow's memory, and how it is stored.

    `steps` lead from the row to it: (kind, whether it may be null, which child comes next), as in walk.pxd. `form` is
    (memory, order, physical type, width), as in form.pxd. `names` are those in its path in the file.
    """

    cdef Path path
    cdef Form form
    cdef int top
    cdef int encoding
    cdef bint has_statistics
    cdef int64_t filter_size
    cdef readonly object compressor
    cdef tuple names

    @property
    def name(self):
        """Its path in the file."""
        return ".".join(name.decode() for name in self.names)

    def __init__(self, top, steps, form, names, *, encoding, compressor, has_statistics, filter_size):
        if len(steps) > DEEPEST:
            raise ValueError("the column lies too deep")
        self.top, self.names, self.compressor = top, tuple(name.encode() for name in names), compressor
        self.path.count = len(steps)
        for index, (kind, is_nullable, child) in enumerate(steps):
            self.path.steps[index] = Step(kind, is_nullable, child)
            self.path.defined += is_nullable + (kind != AT_LEAF and kind != IN_STRUCT)
            self.path.repeated += kind != AT_LEAF and kind != IN_STRUCT
        self.form.memory, self.form.order, self.form.type, self.form.width = form
        self._check(encoding, filter_size)
        self.encoding = PLAIN if self.form.type == BOOLEAN and encoding == IN_DICTIONARY else encoding
        self.has_statistics, self.filter_size = has_statistics, filter_size

    cdef int _check(self, int encoding, int64_t filter_size) except -1:
        """ValueError where values of this form have no such encoding, and for a filter that isn't of whole blocks."""
        cdef bint is_integer = self.form.memory == AS_WORDS and self.form.order == BY_NUMBER
        if encoding == DIFFERENCES and not is_integer or encoding == SHARED_STARTS and self.form.type != BYTE_ARRAY:
            raise ValueError(f"physical type {self.form.type} has no encoding {encoding}")
        if filter_size < 0 or filter_size % FILTER_BLOCK:
            raise ValueError(f"a bloom filter of {filter_size} bytes has no whole blocks of {FILTER_BLOCK}")
        return 0


cdef class Chunk:
    """What the footer and the indexes say of a column chunk that was written."""

    cdef readonly int64_t size, unpacked, start
    cdef readonly bytes column_index    # None if there is none
    cdef readonly bytes offset_index
    cdef public bytes bloom_filter      # None if there is none, or when it is written
    cdef public tuple distinct          # all values but nulls, once each; None if they aren't known, or taken
    cdef bytes _before, _sizes

    def metadata(self, filter_offset, filter_size):
        """The chunk's ColumnMetaData. `filter_offset` is None if it has no bloom filter."""
        cdef Bytes out
        cdef Fields fields
        memset(&out, 0, sizeof(out))
        try:
            put(&out, <const char*>self._before, len(self._before))
            fields.out, fields.last = &out, BEFORE_FILTER
            if filter_offset is not None:
                number(&fields, 14, I64, filter_offset)
                number(&fields, 15, I32, filter_size)
            head(&fields, 16, STRUCT)
            put(&out, <const char*>self._sizes, len(self._sizes))
            end(&fields)
            return PyBytes_FromStringAndSize(<char*>out.data, out.size)
        finally:
            release(&out)


cdef uint64_t _KEY = int.from_bytes(urandom(8), "little")


cdef object _view(const Bytes* data):
    return PyMemoryView_FromMemory(<char*>data.data, data.size, PyBUF_READ)


cdef class ChunkWriter:
    """Writes column chunks to `sink`, one after the other.

    Its memory is that of one page, and of one dictionary with the pages that are made by it: these come behind it.
    `written` bytes are in the file already.
    """

    cdef object _sink
    cdef Column _column
    cdef const Path* _path
    cdef const Form* _form
    cdef Walk _walk
    cdef Page _page
    cdef Dictionary _dictionary
    cdef ChunkTotals _totals
    cdef Bytes _values          # a piece's numbers, or its texts
    cdef Bytes _plain           # a page before it is compressed
    cdef Bytes _out             # pages that aren't in the sink yet
    cdef Bytes _filter
    cdef Bytes _spare
    cdef uint32_t _page_number
    cdef bint _by_dictionary
    cdef int64_t _dictionary_size, _start
    cdef readonly int64_t written

    def __cinit__(self, sink, written):
        self._sink, self.written = sink, written
        self._dictionary.key = _KEY

    def __dealloc__(self):
        give_back_walk(&self._walk)
        give_back_page(&self._page)
        give_back(&self._dictionary)
        give_back_totals(&self._totals)
        release(&self._values)
        release(&self._plain)
        release(&self._out)
        release(&self._filter)
        release(&self._spare)

    def write(self, Column column, Rows rows, int64_t most_distinct=-1):
        """Write all values of a column. The chunk lists its distinct values if it has at most `most_distinct`.

        OSError if the sink refuses them, OverflowError where a page comes to 2 GiB, NullNotAllowed for a null that
        the column's fields don't allow. Nothing can be written after an error.
        """
        cdef ArrowArray* batch
        cdef Py_ssize_t index
        cdef int64_t row, taken
        cdef tuple distinct = None
        cdef Chunk chunk
        self._begin(column)
        for index in range(len(rows._capsules)):
            batch = rows.batch(index)
            row = 0
            while row < batch.length:
                taken = self._piece(batch.children[column.top], batch.offset + row, batch.length - row)
                with nogil:
                    self._add(batch.children[column.top], batch.offset + row, taken)
                row += taken
                if self._by_dictionary and self._dictionary.size > DICTIONARY_BYTES:
                    self._end_page()
                    self._put_dictionary()
        if self._page.rows:
            self._end_page()
        if self._by_dictionary:
            distinct = distinct_values(&self._dictionary, self._form, most_distinct)
            self._put_dictionary()
        self._flush()
        chunk = self._described()
        chunk.distinct = distinct
        return chunk

    cdef int _begin(self, Column column) except -1:
        self._column, self._path, self._form = column, &column.path, &column.form
        self._by_dictionary = column.encoding == IN_DICTIONARY
        self._page_number, self._dictionary_size, self._start = 1, 0, self.written
        if self._by_dictionary:
            restart(&self._dictionary)
        self._out.size = self._filter.size = 0
        put_zeros(&self._filter, column.filter_size)
        start_page(&self._page, column.encoding)
        start_totals(&self._totals, column.has_statistics)
        return 0

    cdef int64_t _piece(self, const ArrowArray* array, int64_t row, int64_t left) except -1:
        """How many of the rows that are left are taken next. The page is ended before, if they have no room in it."""
        cdef int64_t rows, bytes
        if self._page.rows >= PAGE_ROWS:
            self._end_page()
        rows = min(left, PIECE_ROWS, PAGE_ROWS - self._page.rows)
        while True:
            bytes = weight(self._path, array, row, rows, self._form.width, self._form.memory == AS_LARGE_TEXTS)
            if bytes <= PIECE_BYTES or rows == 1:
                break
            rows >>= 1
        if self._page.rows and gathered_bytes(&self._page) + bytes > PAGE_BYTES:
            self._end_page()
        return rows

    cdef int _add(self, const ArrowArray* array, int64_t row, int64_t rows) except -1 nogil:
        """Add rows to the page."""
        take_walk(&self._walk, self._path, array, row, rows)
        add_levels(&self._page, &self._walk, self._path)
        self._page.rows += rows
        if not self._walk.alive:
            return 0
        if self._form.memory <= AS_WORDS:
            take_numbers(&self._values, &self._walk, self._form)
            return self._add_numbers(<const int64_t*>self._values.data, self._walk.alive)
        self._page.text_bytes += take_texts(&self._values, &self._walk, self._form)
        return self._add_texts(<const Text*>self._values.data, self._walk.alive)

    cdef int _add_numbers(self, const int64_t* numbers, int64_t count) except -1 nogil:
        cdef bint is_seen = self._column.has_statistics
        cdef int64_t index, place, known
        cdef uint32_t* places
        cdef uint32_t* pages
        if self._by_dictionary:
            places = <uint32_t*>extend(&self._page.places, count * 4)
            for index in range(count):
                if index and numbers[index] == numbers[index - 1]:
                    places[index] = places[index - 1]
                    continue
                known = self._dictionary.count
                place = place_of_word(&self._dictionary, <uint64_t>numbers[index], self._form.width)
                places[index] = <uint32_t>place
                if place == known and self._filter.size:
                    self._filter_number(numbers[index])
                pages = <uint32_t*>self._dictionary.pages.data
                if is_seen and pages[place] != self._page_number:
                    pages[place] = self._page_number
                    see_word(&self._page.extremes, self._form, <uint64_t>numbers[index])
            return 0
        if self._page.encoding == DIFFERENCES:
            put(&self._page.numbers, numbers, count * 8)
        else:
            add_plain_numbers(&self._page, self._form, numbers, count)
        if self._filter.size:
            for index in range(count):
                self._filter_number(numbers[index])
        if is_seen and self._form.order == BY_NUMBER:
            see_numbers(&self._page.extremes, numbers, count)
        elif is_seen:
            for index in range(count):
                see_word(&self._page.extremes, self._form, <uint64_t>numbers[index])
        return 0

    cdef int _add_texts(self, const Text* texts, int64_t count) except -1 nogil:
        cdef bint is_seen = self._column.has_statistics
        cdef int64_t index, place, known
        cdef int more = self._form.width - DECIMAL_WIDTH if self._form.memory == AS_DECIMALS else 0
        cdef uint32_t* places
        cdef uint32_t* pages
        if self._form.type == BYTE_ARRAY:
            more = 4
        if self._by_dictionary:
            places = <uint32_t*>extend(&self._page.places, count * 4)
            for index in range(count):
                known = self._dictionary.count
                place = place_of_text(&self._dictionary, texts[index], more)
                places[index] = <uint32_t>place
                if place == known and self._filter.size:
                    self._filter_text(texts[index])
                pages = <uint32_t*>self._dictionary.pages.data
                if is_seen and pages[place] != self._page_number:
                    pages[place] = self._page_number
                    see_view(&self._page.extremes, self._form, texts[index])
            return 0
        for index in range(count):
            if self._page.encoding == SHARED_STARTS:
                add_shared_start(&self._page, texts[index])
            else:
                put_plain(&self._page.body, self._form, texts[index])
        if self._filter.size:
            for index in range(count):
                self._filter_text(texts[index])
        if is_seen:
            for index in range(count):
                see_view(&self._page.extremes, self._form, texts[index])
        return 0

    cdef void _filter_number(self, int64_t value) noexcept nogil:
        cdef Text view
        view.at, view.size = <const unsigned char*>&value, self._form.width
        add_to_filter(self._filter.data, self._filter.size, view)

    cdef int _filter_text(self, Text text) except -1 nogil:
        if self._form.memory == AS_DECIMALS:
            self._spare.size = 0
            put_plain(&self._spare, self._form, text)
            text.at, text.size = self._spare.data, self._form.width
        add_to_filter(self._filter.data, self._filter.size, text)
        return 0

    cdef int _end_page(self) except -1:
        cdef int64_t start = self._out.size
        cdef Sizes sizes
        if not self._page.rows:
            return 0
        self._plain.size = 0
        with nogil:
            put_page(&self._plain, &self._page, self._path, self._form, self._dictionary.count)
        stored = self._compressed(&sizes)
        put_data_header(&self._out, sizes, self._page.entries, self._page.encoding)
        sizes.plain += self._out.size - start
        self._put_stored(stored)
        add_page(&self._totals, &self._page, self._form, self._path, self._out.size - start, sizes.plain)
        self._totals.dictionary_pages += self._by_dictionary
        self._page_number += 1
        start_page(&self._page, self._page.encoding)
        if not self._by_dictionary and self._out.size > FLUSH_BYTES:
            self._flush()
        return 0

    cdef int _put_dictionary(self) except -1:
        """Write the dictionary's page before all others. Pages that follow are plain."""
        cdef Bytes held = self._out
        cdef Sizes sizes
        cdef int64_t index
        cdef uint64_t word
        self._plain.size = 0
        with nogil:
            for index in range(self._dictionary.count):
                if self._form.memory <= AS_WORDS:
                    word = (<uint64_t*>self._dictionary.words.data)[index]
                    put(&self._plain, &word, self._form.width)
                else:
                    put_plain(&self._plain, self._form, (<Text*>self._dictionary.texts.data)[index])
        stored = self._compressed(&sizes)
        memset(&self._out, 0, sizeof(Bytes))
        try:
            put_dictionary_header(&self._out, sizes, self._dictionary.count)
            self._totals.unpacked += self._out.size + sizes.plain
            self._put_stored(stored)
            self._dictionary_size = self._out.size
            self._flush()
        finally:
            release(&self._out)
            self._out = held
        self._by_dictionary = False
        start_page(&self._page, PLAIN)
        return self._flush()

    cdef object _compressed(self, Sizes* sizes):
        """The bytes in `_plain` as they are stored."""
        stored = _view(&self._plain)
        if self._plain.size > INT32_MAX or self._page.entries > INT32_MAX:
            raise OverflowError(self._plain.size)
        if self._column.compressor is not None:
            stored = self._column.compressor.compress(stored)
        if len(stored) + HEADER_BYTES > INT32_MAX:
            raise OverflowError(len(stored))
        sizes.plain, sizes.stored, sizes.checksum = self._plain.size, len(stored), crc32(stored)
        return stored

    cdef int _put_stored(self, object stored) except -1:
        cdef const unsigned char[::1] data = stored
        if data.shape[0]:
            put(&self._out, &data[0], data.shape[0])
        return 0

    cdef int _flush(self) except -1:
        if self._out.size:
            view = _view(&self._out)
            self._sink.write(view)
            view.release()      # else who kept it would read memory that is somebody else's by then
            self.written += self._out.size
            self._out.size = 0
        return 0

    cdef Chunk _described(self):
        cdef Chunk chunk = Chunk.__new__(Chunk)
        cdef ChunkPlace place
        cdef int64_t data_start = self._start + self._dictionary_size
        chunk.size, chunk.unpacked, chunk.start = self.written - self._start, self._totals.unpacked, self._start
        self._spare.size = 0
        put_offset_index(&self._spare, &self._totals, self._form, data_start)
        chunk.offset_index = self._taken()
        if self._totals.is_indexed:
            put_column_index(&self._spare, &self._totals, self._path)
            chunk.column_index = self._taken()
        put_size_statistics(&self._spare, &self._totals, self._form, self._path)
        chunk._sizes = self._taken()
        if self._filter.size:
            chunk.bloom_filter = PyBytes_FromStringAndSize(<char*>self._filter.data, self._filter.size)
        place.encoding, place.is_compressed = self._column.encoding, self._column.compressor is not None
        place.has_statistics = self._column.has_statistics
        place.start, place.data_start, place.end = self._start, data_start, self.written
        put_metadata(&self._spare, &place, &self._totals, self._form, self._column.names)
        chunk._before = self._taken()
        return chunk

    cdef bytes _taken(self):
        found = PyBytes_FromStringAndSize(<char*>self._spare.data, self._spare.size)
        self._spare.size = 0
        return found
