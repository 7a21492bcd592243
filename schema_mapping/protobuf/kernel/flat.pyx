# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes rows that have only numbers and texts, one column at a time: what to write is decided once for many rows.

Each row of a batch has a slot for the longest row possible. So whole words are written without a branch, and what is
too much is overwritten. Then the rows are moved together.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from schema_mapping.kernel.octets cimport load32, load64
from schema_mapping.protobuf.kernel.numbers cimport wire_number
from schema_mapping.protobuf.kernel.sources cimport Source, is_null
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_IMPLICIT, FIELD_LIST, FIELD_WIDE, Field, NODE_ASIDE, NODE_CUT, NODE_NATIVE, OP_BOOL, OP_BYTES, OP_DOUBLE,
    OP_FIXED32, OP_FIXED64, OP_FLOAT, OP_INT32, OP_INT64, OP_LAST_VARINT, OP_SINT32, OP_SINT64, OP_UINT32,
)
from schema_mapping.protobuf.kernel.wire cimport put_varint, varint_size, varint_word
from schema_mapping.protobuf.kernel.writer cimport ROOM, Writer, make_room, put_tag, set_start

cdef extern from *:
    void __builtin_prefetch(const void*) noexcept nogil

cdef enum:
    LINE = 64               # bytes of a cache line
    AHEAD = 32 * LINE       # how far ahead memory is prefetched
    PIECE = 16
    SLACK = 48              # spare bytes before a row, as one write may exceed the row by as many
    LONG = 512              # rows from this size on are copied by memcpy
    NUMBER = 16             # more bytes than a tag and a number take, or a tag and a length


cdef inline const int32_t* live_fields(const Writer* w) noexcept nogil:
    return w.sources.live + w.nodes[0].first_field


cdef bint is_flat(Writer* w, Flat* f) noexcept nogil:
    # Whether the rows have only numbers and texts. Sets how many make a batch.
    cdef const int32_t* live = live_fields(w)
    cdef const Field* field
    cdef int64_t texts = 0
    cdef int i
    if w.nodes[0].flags & (NODE_NATIVE | NODE_ASIDE | NODE_CUT):
        return False
    f.fixed = SLACK
    for i in range(w.sources.live_counts[0]):
        field = &w.fields[live[i]]
        if field.op > OP_BYTES or field.flags & FIELD_LIST:
            return False
        f.fixed += NUMBER
        texts += field.op > OP_FLOAT
    f.rows = min(<int64_t>FLAT_ROWS, (FLAT_BYTES >> 1) // (f.fixed + 32 * texts))
    return f.rows >= FLAT_FEWEST


cdef uint8_t* write_flat(Writer* w, Flat* f, int64_t first, int n, uint8_t* p) noexcept nogil:
    # Writes `n` rows before `p`. NULL if memory is out, the rows are too long, or a text isn't one of its enum.
    cdef const int32_t* live = live_fields(w)
    cdef const Field* field
    cdef int64_t total = 0
    cdef int at, r
    if not lay_out(w, f, first, n):
        return NULL
    if w.sources.unknown[0].offsets != NULL:
        put_bare(f, &w.sources.unknown[0], first, n)
    for at in range(w.sources.live_counts[0] - 1, -1, -1):
        field = &w.fields[live[at]]
        if field.op > OP_FLOAT:
            put_texts(f, field, &w.sources.fields[live[at]], first, n)
        elif not put_numbers(w, f, live[at], first, n):
            return NULL
    if w.sources.prefix.offsets != NULL:
        put_bare(f, &w.sources.prefix, first, n)
    for r in range(n):
        total += f.ends[r] - f.places[r]
    p = make_room(w, p, total + ROOM)
    if p != NULL:
        p = move_together(w, f, first, n, p)
    return p


cdef bint lay_out(Writer* w, Flat* f, int64_t first, int n) noexcept nogil:
    # Gives each row a slot.
    cdef const int32_t* live = live_fields(w)
    cdef uint64_t* sizes = f.values
    cdef uint8_t* place = f.slots
    cdef int64_t total = 0
    cdef int at, r
    for r in range(n):
        sizes[r] = f.fixed
    add_lengths(sizes, &w.sources.unknown[0], first, n)
    add_lengths(sizes, &w.sources.prefix, first, n)
    for at in range(w.sources.live_counts[0]):
        if w.fields[live[at]].op > OP_FLOAT:
            add_lengths(sizes, &w.sources.fields[live[at]], first, n)
    for r in range(n):
        total += sizes[r]
    if total > FLAT_BYTES:
        return False
    for r in range(n):
        place += sizes[r]
        f.places[r] = place
        f.ends[r] = place
    return True


cdef inline void look_ahead(const uint8_t* end, int64_t size) noexcept nogil:
    # Prefetches the next batch's part of a column, which lies before this one's: the processor can't follow a hundred
    # columns by itself.
    cdef const uint8_t* p = end - (size if size < AHEAD else AHEAD)
    while p < end:
        __builtin_prefetch(p)
        p += LINE


cdef inline void add_lengths(uint64_t* sizes, const Source* source, int64_t first, int n) noexcept nogil:
    cdef const uint8_t* offsets = <const uint8_t*>(source.offsets + first + source.shift)
    cdef int r
    if source.offsets == NULL:
        return
    if source.entries != NULL:
        add_lengths_of_entries(sizes, source, source.entries + first + source.shift, n)
        return
    look_ahead(offsets, n * 4)
    for r in range(n):
        sizes[r] += load32(offsets + r * 4 + 4) - load32(offsets + r * 4)


cdef inline void add_lengths_of_entries(
    uint64_t* sizes, const Source* source, const int32_t* entries, int n
) noexcept nogil:
    cdef int r
    for r in range(n):
        sizes[r] += <uint64_t>(source.offsets[entries[r] + 1] - source.offsets[entries[r]])


cdef uint8_t* move_together(Writer* w, Flat* f, int64_t first, int n, uint8_t* p) noexcept nogil:
    cdef int64_t size, done
    cdef int r
    for r in range(n - 1, -1, -1):
        size = f.ends[r] - f.places[r]
        if size > LONG:
            memcpy(p - size, f.places[r], size)
        else:
            done = 0
            while done < size:
                done += PIECE
                memcpy(p - done, f.ends[r] - done, PIECE)
        p -= size
        set_start(w, first + r, p)
    return p


cdef bint put_numbers(Writer* w, Flat* f, int index, int64_t first, int n) noexcept nogil:
    cdef const Field* field = &w.fields[index]
    cdef const Source* source = &w.sources.fields[index]
    cdef uint64_t bits
    if OP_BOOL < field.op <= OP_LAST_VARINT:
        if not load_enums(w, f, index, first, n):
            return False
    else:
        load_numbers(f, field, source, first + source.shift, n)
    mark(f, field, source, first, n)
    if field.op > OP_DOUBLE:
        put_halves(f, field, n)
    elif field.op > OP_LAST_VARINT:
        put_words(f, field, n)
    else:
        put_varints(f, field, n)
    return True


cdef bint load_enums(Writer* w, Flat* f, int index, int64_t first, int n) noexcept nogil:
    cdef const Source* source = &w.sources.fields[index]
    cdef int r
    for r in range(n):
        f.values[r] = 0 if is_null(source, first + r) else wire_number(w, index, source, first + r + source.shift)
    return not w.failure


cdef void load_numbers(Flat* f, const Field* field, const Source* source, int64_t at, int n) noexcept nogil:
    # Loads the bits of varints or fixed numbers.
    cdef int op = field.op
    cdef int width = 8 if op == OP_INT64 or op == OP_SINT64 or OP_FIXED64 <= op <= OP_DOUBLE else 4
    cdef const uint8_t* start = source.values + at * width
    cdef uint64_t* out = f.values
    cdef uint64_t value
    cdef uint32_t half
    cdef int r
    if op != OP_BOOL:
        look_ahead(start, n * width)
    if field.flags & FIELD_WIDE:
        for r in range(n):
            out[r] = load64(source.values + (at + r) * 16)
    elif op == OP_INT64 or OP_FIXED64 <= op <= OP_DOUBLE:
        memcpy(out, start, n * 8)
    elif op == OP_INT32:
        for r in range(n):
            out[r] = <uint64_t><int64_t><int32_t>load32(start + r * 4)
    elif op == OP_UINT32 or op == OP_FIXED32 or op == OP_FLOAT:
        for r in range(n):
            out[r] = load32(start + r * 4)
    elif op == OP_SINT32:
        for r in range(n):
            half = load32(start + r * 4)
            out[r] = <uint32_t>(half << 1) ^ (0 - (half >> 31))
    elif op == OP_SINT64:
        for r in range(n):
            value = load64(start + r * 8)
            out[r] = (value << 1) ^ (0 - (value >> 63))
    else:
        for r in range(n):
            out[r] = (source.values[(at + r) >> 3] >> ((at + r) & 7)) & 1


cdef void mark(Flat* f, const Field* field, const Source* source, int64_t first, int n) noexcept nogil:
    # Marks the values to write: no nulls and no implicit defaults.
    cdef const uint8_t* bits = source.validity
    cdef int64_t at = first + source.shift
    cdef int r
    if field.flags & FIELD_IMPLICIT:
        for r in range(n):
            f.masks[r] = 0 - <uint64_t>(f.values[r] != 0)
    else:
        memset(f.masks, 0xFF, n * 8)
    if bits != NULL:
        for r in range(n):
            f.masks[r] &= 0 - <uint64_t>((bits[(at + r) >> 3] >> ((at + r) & 7)) & 1)


cdef inline uint64_t tag_word(const Field* field) noexcept nogil:
    # The tag's bytes, at the upper end of a word.
    cdef uint64_t word = 0
    put_tag(<uint8_t*>&word + 8, field)
    return word


cdef inline void put_word(uint8_t* p, uint64_t word) noexcept nogil:
    memcpy(p - 8, &word, 8)


cdef void put_halves(Flat* f, const Field* field, int n) noexcept nogil:
    cdef uint64_t tag = tag_word(field)
    cdef uint64_t size = 4 + varint_size(field.tag)
    cdef uint8_t* p
    cdef int r
    for r in range(n):
        p = f.places[r]
        put_word(p, f.values[r] << 32)
        put_word(p - 4, tag)
        f.places[r] = p - (size & f.masks[r])


cdef void put_words(Flat* f, const Field* field, int n) noexcept nogil:
    cdef uint64_t tag = tag_word(field)
    cdef uint64_t size = 8 + varint_size(field.tag)
    cdef uint8_t* p
    cdef int r
    for r in range(n):
        p = f.places[r]
        put_word(p, f.values[r])
        put_word(p - 8, tag)
        f.places[r] = p - (size & f.masks[r])


cdef void put_varints(Flat* f, const Field* field, int n) noexcept nogil:
    cdef uint64_t bits = 0
    cdef int r
    for r in range(n):
        bits |= f.values[r] & f.masks[r]
    if bits < 0x80:
        put_bytes_of(f, field, n)
    elif bits >> 56:
        put_long_varints(f, field, n)
    else:
        put_short_varints(f, field, n)


cdef void put_bytes_of(Flat* f, const Field* field, int n) noexcept nogil:
    # Writes varints of one byte.
    cdef uint64_t tag = tag_word(field) >> 8
    cdef uint64_t size = 1 + varint_size(field.tag)
    cdef uint8_t* p
    cdef int r
    for r in range(n):
        p = f.places[r]
        put_word(p, tag | f.values[r] << 56)
        f.places[r] = p - (size & f.masks[r])


cdef void put_short_varints(Flat* f, const Field* field, int n) noexcept nogil:
    # Writes varints of at most eight bytes.
    cdef uint64_t tag = tag_word(field)
    cdef int tag_size = varint_size(field.tag)
    cdef uint8_t* p
    cdef int r, size
    for r in range(n):
        p = f.places[r]
        size = varint_size(f.values[r] & <uint64_t>0x00FFFFFFFFFFFFFF)
        put_word(p, varint_word(f.values[r], size))
        put_word(p - size, tag)
        f.places[r] = p - (<uint64_t>(size + tag_size) & f.masks[r])


cdef void put_long_varints(Flat* f, const Field* field, int n) noexcept nogil:
    cdef int r
    for r in range(n):
        if f.masks[r]:
            f.places[r] = put_tag(put_varint(f.places[r], f.values[r]), field)


cdef inline void put_text(uint8_t* p, const uint8_t* data, int64_t start, int64_t length) noexcept nogil:
    if length <= 2 * PIECE and start + length >= 2 * PIECE:
        # Also copies bytes before the text; what is written later overwrites them.
        data += start + length
        memcpy(p - PIECE, data - PIECE, PIECE)
        memcpy(p - 2 * PIECE, data - 2 * PIECE, PIECE)
    elif length:
        memcpy(p - length, data + start, length)


cdef void put_texts(Flat* f, const Field* field, const Source* source, int64_t first, int n) noexcept nogil:
    cdef const int32_t* offsets = source.offsets
    cdef const int32_t* entries = source.entries
    cdef uint64_t tag = tag_word(field)
    cdef uint64_t tag_size = varint_size(field.tag)
    cdef uint64_t length
    cdef uint8_t* p
    cdef uint8_t* q
    cdef int r
    if entries == NULL:
        offsets += first + source.shift
        look_ahead(source.data + offsets[0], offsets[n] - offsets[0])
    else:
        entries += first + source.shift
    memset(f.values, 0, n * 8)
    add_lengths(f.values, source, first, n)
    mark(f, field, source, first, n)
    for r in range(n):
        p = f.places[r]
        length = f.values[r]
        put_text(p, source.data, offsets[r if entries == NULL else entries[r]], length)
        q = put_varint(p - length, length)
        put_word(q, tag)
        f.places[r] = p - ((<uint64_t>(p - q) + tag_size) & f.masks[r])


cdef void put_bare(Flat* f, const Source* source, int64_t first, int n) noexcept nogil:
    # Writes bytes without a tag.
    cdef const int32_t* offsets = source.offsets + first + source.shift
    cdef int64_t length
    cdef int r
    for r in range(n):
        length = offsets[r + 1] - offsets[r]
        if length and not is_null(source, first + r):
            memcpy(f.places[r] - length, source.data + offsets[r], length)
            f.places[r] -= length
