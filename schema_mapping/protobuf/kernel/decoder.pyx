# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The decoder: takes values in chunks that fit the cache, parses a chunk to slots, and gathers these to Arrow buffers.

If a value can't be read, what it left in the slots is undone, and it becomes a row of `__raw__` and `__err__`; other
values aren't affected. It raises only if memory is out, or if a column exceeds what Arrow's 32-bit offsets hold.
"""

import os

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strlen

from schema_mapping.kernel.octets cimport write_decimal
from schema_mapping.protobuf.kernel.column_memory cimport ColumnMemory
from schema_mapping.protobuf.kernel.columns cimport Column, GATHERED, GATHER_NO_MEMORY, Gathered, Seen, gather, look_over
from schema_mapping.protobuf.kernel.duplicates cimport KeyTable, RowList, mark_duplicates
from schema_mapping.protobuf.kernel.json_items cimport Json
from schema_mapping.protobuf.kernel.parse cimport parse_message
from schema_mapping.protobuf.kernel.scratch cimport (
    BAD_GROUP, BAD_LENGTH, BAD_PACKED, BAD_TAG, BAD_UTF8, BAD_VARINT, BAD_WIRE_TYPE, FINE, NO_MEMORY, Piece, Scratch,
    TOO_DEEP, TOO_LARGE, TRUNCATED, append_row, bytes_slot, close_scratch, open_scratch, reserve_spill, spilled_slot,
)
from schema_mapping.protobuf.kernel.tables cimport OUT_64, OUT_DECIMAL, Output, Tables
from schema_mapping.protobuf.kernel.undo cimport clear_message
from schema_mapping.protobuf.kernel.well_known cimport settle_native

cdef enum:
    MAX_DEPTH = 100
    CHUNK_BYTES = 1 << 17
    CHUNK_WORDS = 1 << 15   # of the root's rows
    SCRATCH_WORDS = 1 << 16 # of all rows
    CHUNK_ROWS = 4096

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")


cdef inline void set_bit(uint64_t* row, int bit) noexcept nogil:
    row[bit >> 6] |= <uint64_t>1 << (bit & 63)


cdef inline void clear_bit(uint64_t* row, int bit) noexcept nogil:
    row[bit >> 6] &= ~(<uint64_t>1 << (bit & 63))


cdef const char* code_text(int failure) noexcept nogil:
    if failure == TRUNCATED:
        return b"truncated"
    elif failure == BAD_VARINT:
        return b"bad_varint"
    elif failure == BAD_TAG:
        return b"bad_tag"
    elif failure == BAD_LENGTH:
        return b"bad_length"
    elif failure == BAD_WIRE_TYPE:
        return b"bad_wire_type"
    elif failure == BAD_GROUP:
        return b"bad_group"
    elif failure == BAD_UTF8:
        return b"bad_utf8"
    elif failure == BAD_PACKED:
        return b"bad_packed"
    elif failure == TOO_DEEP:
        return b"too_deep"
    return b"too_large"


@cython.final
cdef class Values:
    """A binary column to decode: the addresses of its Arrow buffers, and the part to take."""

    cdef const uint8_t* validity
    cdef const void* offsets
    cdef const uint8_t* data
    cdef const int32_t* prefixes
    cdef int64_t start
    cdef readonly int64_t length
    cdef bint large

    def __init__(self, *, size_t validity, size_t offsets, size_t data, size_t prefixes, int64_t start, int64_t length,
                 bint large):
        self.validity = <const uint8_t*>validity
        self.offsets = <const void*>offsets
        self.data = <const uint8_t*>data
        self.prefixes = <const int32_t*>prefixes
        self.start = start
        self.length = length
        self.large = large

    cdef inline bint is_null(self, int64_t i) noexcept nogil:
        i += self.start
        return self.validity != NULL and not (self.validity[i >> 3] >> (i & 7)) & 1

    cdef inline int64_t offset(self, int64_t i) noexcept nogil:
        if self.large:
            return (<const int64_t*>self.offsets)[self.start + i]
        return (<const int32_t*>self.offsets)[self.start + i]


@cython.final
cdef class Decoder:
    """One decoding run: feed it values, then take the columns. Not for use by two threads at once."""

    cdef Tables tables
    cdef Scratch scratch
    cdef Column* columns
    cdef RowList* dead
    cdef KeyTable keys
    cdef Json json
    cdef uint8_t* marks         # for each row of the chunk, whether its columns can't give its value back
    cdef uint64_t* spans        # and the place of its value
    cdef int64_t* totals
    cdef Seen* seen             # of each space
    cdef uint64_t* seen_words
    cdef uint64_t start_bits    # the first word of a row when a value starts
    cdef int64_t chunk_rows
    cdef int64_t chunk_words    # words of the chunk's rows so far
    cdef int64_t item_words     # words of list items in all values
    cdef int64_t spill_before   # size of the spill before the current value
    cdef bint too_large
    cdef public bint refuse_all     # refuses every value as too large
    cdef ColumnMemory memory

    def __cinit__(self, Tables tables not None, *, int chunk_rows, int64_t value_memory):
        cdef int i
        cdef int64_t heads = 0
        cdef Scratch* s = &self.scratch
        self.tables = tables
        if not open_scratch(s, tables, value_memory):
            raise MemoryError
        self.columns = <Column*>calloc(tables.output_count, sizeof(Column))
        self.dead = <RowList*>calloc(tables.map_count + 1, sizeof(RowList))
        self.totals = <int64_t*>calloc(tables.space_count, sizeof(int64_t))
        self.marks = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.spans = <uint64_t*>calloc(CHUNK_ROWS, sizeof(uint64_t))
        self.seen = <Seen*>calloc(tables.space_count, sizeof(Seen))
        for i in range(tables.space_count):
            heads += tables.spaces[i].head
        self.seen_words = <uint64_t*>calloc(2 * heads + 1, sizeof(uint64_t))
        if not (
            self.columns and self.dead and self.totals and self.marks and self.spans and self.seen and self.seen_words
        ):
            raise MemoryError
        heads = 0
        for i in range(tables.space_count):
            self.seen[i].some = self.seen_words + heads
            self.seen[i].every = self.seen[i].some + tables.spaces[i].head
            heads += 2 * tables.spaces[i].head
        set_bit(&self.start_bits, tables.row_bit)
        set_bit(&self.start_bits, tables.ok_bit)
        self.memory = ColumnMemory(count=3 * tables.output_count)
        for i in range(tables.output_count):
            self.columns[i].bits.index = 3 * i
            self.columns[i].values.index = 3 * i + 1
            self.columns[i].data.index = 3 * i + 2
        self.keys.seed = SEED
        self.json.s = s
        self.json.table = &self.keys
        self.chunk_rows = max(64, CHUNK_WORDS // s.spaces[0].stride)
        if chunk_rows > 0:
            self.chunk_rows = chunk_rows
        self.chunk_rows = min(<int64_t>CHUNK_ROWS, self.chunk_rows)

    def __dealloc__(self):
        cdef int i
        close_scratch(&self.scratch, self.tables)
        if self.dead != NULL:
            for i in range(self.tables.map_count):
                free(self.dead[i].rows)
        free(self.columns)
        free(self.dead)
        free(self.keys.places)
        free(self.json.entries)
        free(self.json.dead.rows)
        free(self.marks)
        free(self.spans)
        free(self.totals)
        free(self.seen)
        free(self.seen_words)

    def expect(self, int64_t values, int64_t size):
        """Announces the size of the whole run, so that buffers are made large enough at once."""
        self.memory.values_total = values
        self.memory.bytes_total = size

    def feed(self, Values values not None):
        """Decodes all `values`. Raises MemoryError, or OverflowError if a column or the rows get too large."""
        cdef bint fine
        with nogil:
            fine = self.run(values)
        if not fine:
            if self.too_large:
                raise OverflowError
            raise MemoryError

    cdef bint run(self, Values values) noexcept nogil:
        cdef Scratch* s = &self.scratch
        cdef int64_t i, start, end
        cdef int64_t first = 0
        s.limit = values.data + values.offset(values.length)
        for i in range(values.length):
            start = values.offset(i)
            end = values.offset(i + 1)
            if self.item_words > s.most_words:
                self.too_large = True  # fewer values at a time take less
                return False
            if s.spaces[0].count == 0:
                first = start
            elif (
                s.spaces[0].count >= self.chunk_rows or end - first > CHUNK_BYTES or self.chunk_words > SCRATCH_WORDS
            ):
                self.memory.bytes_done += start - first
                if not self.flush():
                    return False
            if s.spaces[0].count == 0:
                first = start
                s.base = values.data + first
            if values.is_null(i):
                s.words = 0
                if append_row(s, &s.spaces[0]) == NULL:
                    return False
            elif not self.parse(
                values.data + start, values.data + end, values.prefixes[i] if values.prefixes != NULL else 0
            ):
                return False
        return self.flush()

    cdef inline bint parse(self, const uint8_t* p, const uint8_t* end, int64_t prefix) noexcept nogil:
        cdef Scratch* s = &self.scratch
        cdef uint64_t* row
        s.words = 0
        row = append_row(s, &s.spaces[0])
        if row == NULL:
            return False
        s.loose = self.tables.keep_raw
        s.failure = FINE
        s.failed_at = p
        self.spill_before = s.spill_size
        self.start_row(row, p, prefix)
        if not self.refuse_all:
            parse_message(s, &s.nodes[0], p + prefix, end, row, MAX_DEPTH, 0)
            if s.loose and self.tables.has_late and s.failure == FINE and not self.tables.keep_raw:
                self.parse_late(row, p, end, prefix)
        else:
            s.failure = TOO_LARGE
        if s.failure != FINE:
            if s.failure == NO_MEMORY or not self.give_up(row, p):
                return False
        else:
            self.item_words += s.words - s.spaces[0].stride
        self.chunk_words += s.words
        self.spans[s.spaces[0].count - 1] = bytes_slot(p - s.base, end - p)
        if s.loose:
            self.keep_raw(s.spaces[0].count - 1)
        return True

    cdef inline void start_row(self, uint64_t* row, const uint8_t* p, int64_t prefix) noexcept nogil:
        row[0] = self.start_bits
        if prefix:
            set_bit(row, self.tables.prefix_bit)
            row[self.tables.prefix_slot] = bytes_slot(p - self.scratch.base, prefix)

    cdef void parse_late(self, uint64_t* row, const uint8_t* p, const uint8_t* end, int64_t prefix) noexcept nogil:
        # Parses a value again that isn't canonical: it may be so with the members of oneofs after all other fields.
        cdef Scratch* s = &self.scratch
        clear_message(s, &s.nodes[0], row)
        memset(row, 0, s.spaces[0].stride * 8)
        self.start_row(row, p, prefix)
        s.words = s.spaces[0].stride
        s.spill_size = self.spill_before
        s.loose = 0
        s.fields, s.lookup, s.places = self.tables.late_fields, self.tables.late_lookup, self.tables.late_places
        parse_message(s, &s.nodes[0], p + prefix, end, row, MAX_DEPTH, 0)
        s.fields, s.lookup, s.places = self.tables.fields, self.tables.lookup, self.tables.places
        if not s.loose and s.failure == FINE:
            set_bit(row, self.tables.form_bit)
            row[self.tables.form_slot] = spilled_slot(
                self.tables.names_size - self.tables.form_size, self.tables.form_size
            )

    cdef inline void keep_raw(self, int64_t index) noexcept nogil:
        cdef uint64_t* row = self.scratch.spaces[0].block + index * self.scratch.spaces[0].stride
        set_bit(row, self.tables.raw_bit)
        row[self.tables.raw_slot] = self.spans[index]
        clear_bit(row, self.tables.form_bit)
        row[self.tables.form_slot] = 0

    cdef bint give_up(self, uint64_t* row, const uint8_t* start) noexcept nogil:
        # Undoes what the value left in the slots, and records why it was refused.
        cdef Scratch* s = &self.scratch
        cdef const char* code = code_text(s.failure)
        cdef uint8_t* out
        cdef int size
        clear_message(s, &s.nodes[0], row)
        memset(row, 0, s.spaces[0].stride * 8)
        s.failure = FINE
        s.spill_size = self.spill_before
        out = reserve_spill(s, 48)
        if out == NULL:
            return False
        size = <int>strlen(code)
        memcpy(out, code, size)
        out[size] = b"@"
        size += 1
        size += write_decimal(out + size, s.failed_at - start)
        row[self.tables.err_slot] = spilled_slot(s.spill_size, size)
        s.spill_size += size
        set_bit(row, self.tables.row_bit)
        set_bit(row, self.tables.err_bit)
        s.loose = 1
        return True

    cdef bint flush(self) noexcept nogil:
        # Appends the chunk's rows to the columns.
        cdef Scratch* s = &self.scratch
        cdef const Output* output
        cdef Gathered outcome
        cdef int i
        self.memory.values_done += s.spaces[0].count
        self.chunk_words = 0
        for i in range(self.tables.map_count):
            if s.spaces[self.tables.maps[i].space].count > 1 and not self.settle_map(i):
                return False
        if self.tables.native_count and not self.settle_natives():
            return False
        for i in range(self.tables.space_count):
            look_over(&s.spaces[i], self.tables.spaces[i].head, &self.seen[i])
        for i in range(self.tables.output_count):
            output = &self.tables.outputs[i]
            outcome = gather(s, output, &self.columns[i], &self.memory.grower, &self.seen[output.space])
            if outcome != GATHERED:
                self.too_large = outcome != GATHER_NO_MEMORY
                return False
        for i in range(self.tables.space_count):
            if s.spaces[i].count:
                self.totals[i] += s.spaces[i].count
                memset(s.spaces[i].block, 0, s.spaces[i].count * s.spaces[i].stride * 8)
                s.spaces[i].count = 0
        s.piece_count = 0
        s.spill_size = self.tables.names_size
        return True

    cdef bint settle_map(self, int index) noexcept nogil:
        # Values with a key twice in a map are kept raw.
        cdef Scratch* s = &self.scratch
        cdef int space = self.tables.maps[index].space
        cdef int64_t before = self.dead[index].count
        memset(self.marks, 0, s.spaces[0].count)
        if not mark_duplicates(
            s, &self.tables.maps[index], &self.keys, self.totals[space], &self.dead[index], self.marks
        ):
            return False
        if self.dead[index].count > before:
            self.keep_marked()
        return True

    cdef bint settle_natives(self) noexcept nogil:
        # Values are kept raw if a well-known type's column doesn't give its bytes back.
        cdef Scratch* s = &self.scratch
        cdef int i
        memset(self.marks, 0, s.spaces[0].count)
        for i in range(self.tables.native_count):
            if not settle_native(s, &self.tables.natives[i], &self.json, self.marks):
                self.too_large = s.failure == TOO_LARGE
                return False
        self.keep_marked()
        return True

    cdef void keep_marked(self) noexcept nogil:
        cdef int64_t i
        for i in range(self.scratch.spaces[0].count):
            if self.marks[i]:
                self.keep_raw(i)

    def take(self):
        """The columns, one tuple for each output: rows, nulls, and the buffers of bits, values and data, or None."""
        return [self.take_column(i) for i in range(self.tables.output_count)]

    cdef take_column(self, int index):
        cdef Column* column = &self.columns[index]
        cdef int kind = self.tables.outputs[index].kind
        cdef int64_t width = 8 if kind == OUT_64 else 16 if kind == OUT_DECIMAL else 0
        bits = self.memory.cut(&column.bits, (column.rows + 7) >> 3)
        values = self.memory.cut(&column.values, column.rows * width if width else (column.rows + 1) * 4)
        data = self.memory.cut(&column.data, column.data_size)
        return column.rows, column.nulls, bits, values, data

    def scratch_bytes(self):
        """Bytes that the run holds besides its columns: the rows of a chunk and what goes with them."""
        cdef Scratch* s = &self.scratch
        cdef int64_t size = s.spill_capacity + s.piece_capacity * sizeof(Piece)
        for i in range(self.tables.space_count):
            size += s.spaces[i].capacity * s.spaces[i].stride * 8
        return size

    def rows(self):
        """Rows of each row space."""
        return [self.totals[i] for i in range(self.tables.space_count)]

    def dead_rows(self):
        """For each map, the entries whose key comes again later, as the bytes of 64-bit row numbers, or None."""
        return [
            (<char*>self.dead[i].rows)[: self.dead[i].count * 8] if self.dead[i].count else None
            for i in range(self.tables.map_count)
        ]
