# The result of parsing one chunk of values: rows of 64-bit slots for each row space, and what the slots refer to.
#
# A row starts with presence bits. Then it has one slot for each column: a number, a string (start << 32 | length), a
# list's count, a list of unknown bytes (head << 32 | tail, indexes in `pieces`, counted from 1), or a oneof's case.
# Unused rows are zeros, except where every use writes the whole row. A string's start without SPILL_BIT is an offset
# from `base`, one with it is an offset in `spill`.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc

from schema_mapping.protobuf.kernel.tables cimport Enumeration, Field, Node, Space, Tables

cdef enum:
    SPILL_BIT = 31

cdef enum Failure:
    FINE = 0
    TRUNCATED = 1
    BAD_VARINT = 2
    BAD_TAG = 3
    BAD_LENGTH = 4
    BAD_WIRE_TYPE = 5
    BAD_GROUP = 6
    BAD_UTF8 = 7
    BAD_PACKED = 8
    TOO_DEEP = 9
    TOO_LARGE = 10
    NO_MEMORY = 11

cdef struct Rows:
    uint64_t* block
    int64_t count
    int64_t capacity
    int64_t stride

cdef struct Piece:
    uint32_t start
    uint32_t length
    uint32_t next

cdef struct Scratch:
    const Field* fields
    const Node* nodes
    const Space* layout
    const uint32_t* numbers
    const int32_t* lookup
    const int32_t* places
    const Enumeration* enums
    const int32_t* enum_numbers
    const uint64_t* enum_names
    const int32_t* enum_lookup
    Rows* spaces
    const uint8_t* base
    const uint8_t* limit    # bytes may be read up to here: the end of the last value given, perhaps far after the chunk
    uint64_t value          # the result of a slow read
    int loose               # the value so far isn't in canonical form
    int failure
    const uint8_t* failed_at
    int64_t words           # words of the rows that the value opened
    int64_t most_words
    uint8_t* spill
    int64_t spill_size
    int64_t spill_capacity
    Piece* pieces
    int64_t piece_count
    int64_t piece_capacity


cdef bint open_scratch(Scratch* s, Tables tables, int64_t value_memory) noexcept
cdef void close_scratch(Scratch* s, Tables tables) noexcept
cdef bint grow_rows(Scratch* s, Rows* rows, int64_t more) noexcept nogil


cdef inline uint64_t* append_row(Scratch* s, Rows* rows) noexcept nogil:
    cdef uint64_t* row
    s.words += rows.stride
    if s.words > s.most_words:
        fail(s, TOO_LARGE, s.failed_at)
        return NULL
    if rows.count == rows.capacity and not grow_rows(s, rows, 1):
        return NULL
    row = rows.block + rows.count * rows.stride
    rows.count += 1
    return row


cdef inline const uint8_t* fail(Scratch* s, Failure failure, const uint8_t* at) noexcept nogil:
    if s.failure == FINE:
        s.failure = failure
        s.failed_at = at
    return NULL


cdef inline uint8_t* reserve_spill(Scratch* s, int64_t more) noexcept nogil:
    cdef int64_t capacity
    cdef void* block
    if s.spill_size + more > s.spill_capacity:
        if s.spill_size + more >= (<int64_t>1 << SPILL_BIT):
            s.failure = TOO_LARGE
            return NULL
        capacity = s.spill_capacity * 2
        if capacity < s.spill_size + more:
            capacity = s.spill_size + more
        block = realloc(s.spill, capacity)
        if block == NULL:
            s.failure = NO_MEMORY
            return NULL
        s.spill = <uint8_t*>block
        s.spill_capacity = capacity
    return s.spill + s.spill_size


cdef inline uint64_t bytes_slot(uint64_t start, uint64_t length) noexcept nogil:
    return start << 32 | length


cdef inline uint64_t spilled_slot(uint64_t start, uint64_t length) noexcept nogil:
    return (start | (<uint64_t>1 << SPILL_BIT)) << 32 | length


cdef inline bint add_piece(Scratch* s, uint64_t* slot, uint64_t at) noexcept nogil:
    # Appends the string slot `at` to the unknown bytes in `slot`. An empty string adds nothing.
    cdef int64_t capacity
    cdef void* block
    cdef uint64_t last = <uint32_t>slot[0]
    cdef Piece* piece
    if <uint32_t>at == 0:
        return True
    if last:
        piece = &s.pieces[last - 1]
        if piece.start + piece.length == <uint32_t>(at >> 32):
            piece.length += <uint32_t>at
            return True
    if s.piece_count == s.piece_capacity:
        if s.piece_count >= 0x7FFFFFFF:
            s.failure = TOO_LARGE
            return False
        capacity = s.piece_capacity * 2 + 64
        block = realloc(s.pieces, capacity * sizeof(Piece))
        if block == NULL:
            s.failure = NO_MEMORY
            return False
        s.pieces = <Piece*>block
        s.piece_capacity = capacity
    piece = &s.pieces[s.piece_count]
    piece.start = <uint32_t>(at >> 32)
    piece.length = <uint32_t>at
    piece.next = 0
    s.piece_count += 1
    if last:
        s.pieces[last - 1].next = <uint32_t>s.piece_count
        slot[0] = (slot[0] & <uint64_t>0xFFFFFFFF00000000) | <uint64_t>s.piece_count
    else:
        slot[0] = <uint64_t>s.piece_count << 32 | <uint64_t>s.piece_count
    return True
