# The state of encoding one row after the other.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.json.kernel.reading cimport (
    ESCAPE_ASCII, ESCAPE_LINES, ESCAPE_NEXT, ESCAPE_PAIRS, SPACE_BEFORE, SPACE_COLON, SPACE_FLAT, SPACE_INLINE,
)
from schema_mapping.json.kernel.tables cimport Node

cdef enum Problem:
    NO_PROBLEM = 0
    NO_MEMORY = 1
    NOT_A_FORM = 2
    OTHER_VALUE = 3

# Row i of a row space is value i + shift of the buffers.
cdef struct Source:
    const uint8_t* validity
    const uint8_t* values
    const uint8_t* data
    int64_t shift

cdef struct Writing:
    const Node* nodes
    const uint64_t* names
    const uint8_t* texts
    Source* sources
    uint8_t* p
    uint8_t* start
    uint8_t* end
    void* owner             # a list with one item, the block
    uint8_t special[128]    # ASCII characters that are escaped: the letter after the backslash, or 1 for a number
    const int32_t* entries  # of the orders, and the place of each object's order
    const int32_t* order_start
    const int32_t* order_size
    const uint8_t* is_null  # by member: whether it differs from `nulls`
    bint nulls
    uint32_t escapes
    uint32_t spaces
    int32_t indent
    int style
    bint is_compact         # no space but a line feed at the end
    bint is_usual           # only the necessary ASCII characters are escaped
    int depth
    int problem
    int column              # that has the problem

# What is left of an object's unknown members.
cdef struct Unknown:
    const uint8_t* p
    const uint8_t* end


cdef inline bint is_null(const Source* source, int64_t i) noexcept nogil:
    i += source.shift
    return source.validity != NULL and not (source.validity[i >> 3] >> (i & 7)) & 1


cdef inline bint stop(Writing* w, int problem, int column) noexcept nogil:
    w.problem = problem
    w.column = column
    return False


cdef inline bint is_inline(const Writing* w, uint8_t bracket) noexcept nogil:
    return bracket == 0x5B and w.spaces & (SPACE_INLINE | SPACE_FLAT) != 0


cdef inline bint is_escaped(const Writing* w, uint32_t code) noexcept nogil:
    # Whether a character that isn't ASCII is written as its number.
    if w.escapes & ESCAPE_ASCII:
        return True
    if code >= 0x10000:
        return w.escapes & ESCAPE_PAIRS != 0
    if code == 0x2028 or code == 0x2029:
        return w.escapes & ESCAPE_LINES != 0
    return code == 0x85 and w.escapes & ESCAPE_NEXT != 0


cdef inline void write_colon(Writing* w) noexcept nogil:
    if w.spaces & SPACE_BEFORE:
        w.p[0] = 32
        w.p += 1
    w.p[0] = 0x3A
    w.p += 1
    if w.spaces & SPACE_COLON:
        w.p[0] = 32
        w.p += 1
