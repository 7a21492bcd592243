# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The decoder: reads values one after the other into growing columns.

If a value can't be read, what it has appended is taken back, and it becomes a row of `__raw__` and `__err__`; other
values aren't affected. It raises only if memory is out, or if a column exceeds what Arrow's 32-bit offsets hold.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strlen

from schema_mapping.json.kernel.numbers cimport ALL_STYLES
from schema_mapping.json.kernel.reading cimport (
    BAD_JSON, BAD_UTF8, FINE, OTHER_TYPE, SPACE_NEWLINE, STOPPED, TOO_DEEP, TOO_LARGE, TRUNCATED, Reading, Seen, fail,
    read_value, skip_space,
)
from schema_mapping.json.kernel.scanning cimport skip_literal
from schema_mapping.json.kernel.shapes cimport Shapes
from schema_mapping.json.kernel.tables cimport OP_OBJECT, Node, Tables
from schema_mapping.kernel.growing cimport (
    COLUMN_TOO_LARGE, GrowingColumns, note_too_large, put_bytes, put_valid, take_back,
)
from schema_mapping.kernel.map_keys cimport close_search, forget_replaced, open_search, replaced_rows
from schema_mapping.kernel.octets cimport write_decimal
from schema_mapping.kernel.value_column cimport ValueColumn

cdef enum:
    LONGEST_ERROR = 48


cdef const char* code_text(int failure) noexcept nogil:
    if failure == TRUNCATED:
        return b"truncated"
    elif failure == BAD_JSON:
        return b"bad_json"
    elif failure == BAD_UTF8:
        return b"bad_utf8"
    elif failure == OTHER_TYPE:
        return b"other_type"
    elif failure == TOO_DEEP:
        return b"too_deep"
    return b"too_large"


@cython.final
cdef class JsonDecoder:
    """One decoding run: feed it values, then take the columns. Not for use by two threads at once."""

    cdef Tables tables
    cdef GrowingColumns columns
    cdef Shapes shapes
    cdef Reading reading
    cdef int64_t* counts_before     # rows of each space before the current value
    cdef int64_t value_memory
    cdef int64_t memory             # of the rows of all values that were read
    cdef public bint refuse_all     # refuses every value as too large

    def __cinit__(self, Tables tables not None, *, int64_t value_memory, int64_t most_forms):
        cdef Reading* r = &self.reading
        cdef int members = tables.member_count + tables.object_count + 1
        cdef int i, k
        cdef const Node* node
        self.tables = tables
        self.columns = GrowingColumns(<size_t>tables.columns, tables.column_count)
        self.shapes = Shapes(tables, most_forms=most_forms)
        self.value_memory = value_memory
        self.counts_before = <int64_t*>calloc(tables.space_count, sizeof(int64_t))
        r.counts = <int64_t*>calloc(tables.space_count, sizeof(int64_t))
        r.member_in = <int64_t*>calloc(members, sizeof(int64_t))
        r.next_member = <int32_t*>calloc(members, sizeof(int32_t))
        r.null_member = <uint8_t*>calloc(members, 1)
        r.null_members = <int32_t*>calloc(members, sizeof(int32_t))
        if NULL in (self.counts_before, r.counts, r.member_in, r.next_member, r.null_member, r.null_members):
            raise MemoryError
        if not open_search(&r.search, tables.space_count):
            raise MemoryError
        r.nodes = tables.nodes
        r.names = tables.names
        r.lookup = tables.lookup
        r.texts = tables.texts
        r.row_bytes = tables.row_bytes
        r.columns = self.columns.columns
        r.owner = <void*>self.columns
        r.shapes = <void*>self.shapes
        for i in range(tables.object_count):
            node = &tables.nodes[tables.objects[i]]
            for k in range(node.count + 1):
                r.next_member[node.member + node.object + k] = k

    def __dealloc__(self):
        close_search(&self.reading.search, self.tables.space_count)
        free(self.reading.counts)
        free(self.reading.member_in)
        free(self.reading.next_member)
        free(self.reading.null_member)
        free(self.reading.null_members)
        free(self.reading.order)
        free(self.reading.spans)
        free(self.reading.mended)
        free(self.counts_before)

    def feed(self, ValueColumn values not None):
        """Decodes all `values`. Raises MemoryError, or OverflowError if a column or the rows get too large."""
        cdef bint is_fine
        with nogil:
            is_fine = self.run(values)
        if not is_fine:
            if self.columns.trouble == COLUMN_TOO_LARGE:
                raise OverflowError
            raise MemoryError

    cdef bint run(self, ValueColumn values) noexcept nogil:
        cdef int64_t i
        self.reading.limit = values.data + values.offset(values.length)
        for i in range(values.length):
            self.reading.counts[0] += 1
            if self.memory > self.value_memory:
                note_too_large(<void*>self.columns)  # fewer values at a time take less
                return False
            if not values.is_null(i) and not self.read(
                values.data + values.offset(i),
                values.data + values.offset(i + 1),
                values.prefixes[i] if values.prefixes != NULL else 0,
            ):
                return False
        return True

    cdef const uint8_t* read_root(self, const uint8_t* p) noexcept nogil:
        # Returns the end of the value, without the space after it.
        cdef Reading* r = &self.reading
        cdef const Node* root = &r.nodes[self.tables.root]
        cdef const uint8_t* start = skip_space(p, r.end)
        if start != p:
            r.loose = True
        if start < r.end and start[0] == b"n":
            if root.op == OP_OBJECT and root.out < 0:
                r.loose = True
            p = skip_literal(r, start)
        else:
            p = read_value(r, root, start, 0)
        if p == NULL or p == r.end:
            return p
        start = skip_space(p, r.end)
        if start < r.end:
            return fail(r, BAD_JSON, start)
        if start - p == 1 and p[0] == 10:
            r.seen.spaces |= SPACE_NEWLINE
        else:
            r.loose = True
        return start

    cdef bint read(self, const uint8_t* p, const uint8_t* end, int64_t prefix) noexcept nogil:
        cdef Reading* r = &self.reading
        cdef const uint8_t* after = NULL
        cdef int64_t row = r.counts[0] - 1
        memcpy(self.counts_before, r.counts, self.tables.space_count * sizeof(int64_t))
        memset(&r.seen, 0, sizeof(Seen))
        self.shapes.value += 1
        r.seen.styles = ALL_STYLES
        r.end = end
        r.failed_at = p
        r.failure = TOO_LARGE if self.refuse_all else FINE
        r.loose = self.tables.keep_raw
        r.memory = self.value_memory
        r.order_size = r.span_count = 0
        r.first_serial = r.serial + 1
        if not self.put_present(row):
            return False
        if not self.refuse_all:
            after = self.read_root(p + prefix)
        if after == NULL:
            return r.failure != STOPPED and self.give_up(row, p, end)
        self.memory += self.value_memory - r.memory
        if prefix and not self.put(self.tables.prefix_column, row, p, prefix):
            return False
        if not r.loose and not (self.shapes.compose(r) and self.shapes.is_new_form_allowed()):
            r.loose = True
        if r.loose:
            return self.put(self.tables.raw_column, row, p, end - p)
        if self.shapes.text_size == 0:
            return True
        return self.put(self.tables.form_column, row, self.shapes.text, self.shapes.text_size)

    cdef inline bint put_present(self, int64_t row) noexcept nogil:
        return put_valid(<void*>self.columns, &self.columns.columns[self.tables.row_column], row)

    cdef inline bint put(self, int column, int64_t row, const uint8_t* p, int64_t size) noexcept nogil:
        return put_bytes(<void*>self.columns, &self.columns.columns[column], row, p, size)

    cdef bint give_up(self, int64_t row, const uint8_t* start, const uint8_t* end) noexcept nogil:
        # Takes back what the value has appended, and records why it was refused.
        cdef Reading* r = &self.reading
        cdef uint8_t text[LONGEST_ERROR]
        cdef const char* code = code_text(r.failure)
        cdef int64_t size = <int64_t>strlen(code)
        cdef int32_t space
        cdef int i
        memcpy(r.counts, self.counts_before, self.tables.space_count * sizeof(int64_t))
        for i in range(self.tables.column_count):
            take_back(&r.columns[i], row if r.columns[i].space == 0 else r.counts[r.columns[i].space])
        for i in range(self.tables.map_count):
            space = self.tables.map_spaces[i]
            forget_replaced(&r.search.replaced[space], r.counts[space])
        memcpy(text, code, size)
        text[size] = b"@"
        size += 1
        size += write_decimal(text + size, r.failed_at - start)
        return (
            self.put_present(row)
            and self.put(self.tables.raw_column, row, start, end - start)
            and self.put(self.tables.err_column, row, text, size)
        )

    def rows(self):
        """The number of rows of each row space."""
        return [self.reading.counts[i] for i in range(self.tables.space_count)]

    def replaced_rows(self, int space):
        """The entries of maps in this space whose key comes again in the map, as 64-bit rows. None if there are none.
        """
        return replaced_rows(&self.reading.search, space)

    def take(self, int column):
        """The buffers of a column: validity, values and data. None if all its values are null."""
        return self.columns.buffers(column, self.reading.counts[self.columns.columns[column].space])
