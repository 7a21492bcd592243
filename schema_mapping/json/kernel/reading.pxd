# The state of decoding one value after the other.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.json.kernel.tables cimport Node
from schema_mapping.kernel.growing cimport Growing
from schema_mapping.kernel.map_keys cimport KeySearch

cdef enum:
    MAX_DEPTH = 1000

cdef enum Failure:
    FINE = 0
    TRUNCATED = 1
    BAD_JSON = 2
    BAD_UTF8 = 3
    OTHER_TYPE = 4
    TOO_DEEP = 5
    TOO_LARGE = 6
    STOPPED = 7         # memory is out, or a column is too large: see `GrowingColumns.trouble`

# What a writer escapes beyond what it must, as bits of a form.
cdef enum Escapes:
    ESCAPE_ASCII = 1        # everything that isn't ASCII
    ESCAPE_UPPER = 2        # with capital hexadecimal digits
    ESCAPE_SLASH = 4
    ESCAPE_HTML = 8         # < > &
    ESCAPE_LINES = 16       # U+2028 and U+2029
    ESCAPE_LONG = 32        # \b and \f as \u0008 and \u000c
    ESCAPE_DELETE = 64      # U+007F
    ESCAPE_QUOTES = 128     # " ' + ` as \u0022 and so on
    ESCAPE_PAIRS = 256      # beyond U+FFFF, as a pair of surrogates
    ESCAPE_NEXT = 512       # U+0085
    ESCAPE_SINGLE = 1024    # '
    ESCAPE_EQUALS = 2048    # =

cdef enum:
    ESCAPES = 12

# White space, as bits of a form. The number of spaces of an indent is beside them.
cdef enum Spaces:
    SPACE_COMMA = 1         # one space after a comma
    SPACE_COLON = 2         # after a colon
    SPACE_BEFORE = 4        # before a colon
    SPACE_EMPTY = 8         # in empty objects and arrays
    SPACE_TAB = 16          # indents are one tab
    SPACE_INLINE = 32       # arrays within indented objects: in one line, with spaces inside
    SPACE_FLAT = 64         # arrays within indented objects: in one line, without
    SPACE_NEWLINE = 128     # a line feed after the value

# A part of a value's bytes.
cdef struct Span:
    const uint8_t* start
    int64_t size

# The style of the current value, as far as it was read.
cdef struct Seen:
    uint32_t escapes
    uint32_t styles         # of numbers that fit all its doubles
    uint32_t spaces
    int32_t indent
    bint comma              # whether the first of each was read
    bint colon
    bint open_object
    bint open_array
    int64_t nulls           # members that are null, and members that are absent
    int64_t absent
    int32_t orders          # objects in another order than the schema's

cdef struct Reading:
    const Node* nodes
    const uint64_t* names
    const int32_t* lookup
    const uint8_t* texts
    Growing* columns
    void* owner             # of the columns
    void* shapes            # the Shapes
    int64_t* counts         # rows of each space
    const int64_t* row_bytes
    KeySearch search
    int64_t serial          # of the current object
    int64_t first_serial    # of the current value's objects
    int64_t* member_in      # by member: the last object that had it
    int32_t* next_member    # by member, and by object before its first: the member that followed last time
    uint8_t* null_member    # by member: whether it is written as null, as far as it was seen
    int32_t* null_members   # by object: how many of its members are so
    int32_t* order          # a stack: members of the open objects, and minus how many unknown ones
    int64_t order_size
    int64_t order_room
    Span* spans             # a stack: the unknown members of the open objects
    int64_t span_count
    int64_t span_room
    uint8_t* mended         # room for texts without escapes
    int64_t mended_size
    const uint8_t* end      # of the value
    const uint8_t* limit    # bytes may be read up to here
    const uint8_t* failed_at
    int failure
    bint loose              # the value's columns don't give its bytes back
    int64_t memory          # bytes of rows that the value may still open
    Seen seen


cdef const uint8_t* read_value(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil
cdef bint more_order(Reading* r) noexcept nogil


cdef inline const uint8_t* fail(Reading* r, Failure failure, const uint8_t* at) noexcept nogil:
    if r.failure == FINE:
        r.failure = failure
        r.failed_at = at
    return NULL


cdef inline const uint8_t* skip_space(const uint8_t* p, const uint8_t* end) noexcept nogil:
    while p < end and (p[0] == 32 or p[0] == 10 or p[0] == 13 or p[0] == 9):
        p += 1
    return p


# Fails with what isn't JSON at a place: nothing, or another byte.
cdef inline const uint8_t* fail_at(Reading* r, const uint8_t* at) noexcept nogil:
    return fail(r, TRUNCATED if at >= r.end else BAD_JSON, at)
