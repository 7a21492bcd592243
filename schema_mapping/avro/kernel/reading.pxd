# The state of decoding one value after the other, and the reader of types.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from schema_mapping.avro.kernel.tables cimport Node
from schema_mapping.kernel.growing cimport Growing
from schema_mapping.kernel.map_keys cimport KeySearch

cdef enum Failure:
    FINE = 0
    TRUNCATED = 1
    BAD_VARINT = 2
    BAD_LENGTH = 3
    BAD_COUNT = 4
    BAD_UNION = 5
    BAD_ENUM = 6
    TOO_DEEP = 7
    TOO_LARGE = 8
    STOPPED = 9         # memory is out, or a column is too large: see `GrowingColumns.trouble`

cdef struct Reading:
    const Node* nodes
    const uint64_t* symbols
    const uint8_t* texts
    Growing* columns
    void* owner             # of the columns
    int64_t* counts         # rows of each space
    const int64_t* row_bytes
    KeySearch search
    uint8_t* mended         # room for repaired texts
    int64_t mended_size
    const uint8_t* end      # of the value
    const uint8_t* limit    # bytes may be read up to here
    const uint8_t* failed_at
    int failure
    bint loose              # the value's columns don't give its bytes back
    bint is_plain           # all its arrays and maps are one block each
    bint is_sized           # all of them are blocks of 100 with sizes
    int64_t memory          # bytes of rows that the value may still open
    int64_t free_items      # items without bytes that the value may still have


cdef const uint8_t* read_value(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil


cdef inline const uint8_t* fail(Reading* r, Failure failure, const uint8_t* at) noexcept nogil:
    if r.failure == FINE:
        r.failure = failure
        r.failed_at = at
    return NULL
