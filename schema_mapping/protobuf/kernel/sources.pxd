# The columns of rows to encode: the Arrow buffers and a shift for each field of the tables.

from libc.stdint cimport int32_t, int64_t, uint8_t

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.protobuf.kernel.tables cimport Field, Node

cdef extern from *:
    void __builtin_prefetch(const void*) noexcept nogil

cdef enum:
    FORESIGHT = 192         # bytes
    BEFORE_TEXTS = 32       # bytes that may be read before a text of a dictionary

# Row i of a row space is value i + shift of the buffers.
cdef struct Source:
    const uint8_t* validity
    const uint8_t* values       # numbers or bits; for an enum's texts in a dictionary, the number of each text
    const int32_t* offsets      # of strings or lists; before those of a dictionary is the number of its texts
    const uint8_t* data
    const int32_t* entries      # of texts in a dictionary: each value's place in `offsets`; else NULL
    int64_t shift

cdef struct Sources:
    const Field* tables_fields
    const Node* tables_nodes
    Source* fields              # a field's column; for a list, its offsets
    Source* elements            # the elements of a list of scalars
    Source* unknown             # the unknown bytes of each node; for a well-known type, its one column
    int32_t* live               # for each node, from its first field on: the fields that aren't empty in all rows
    int32_t* live_counts        # the number of such fields of each node
    int32_t* late               # as `live`, with the members of oneofs last
    int32_t* late_columns       # as `late`, but fields without a column stay among those outside oneofs
    uint8_t* is_live            # for each field, whether it is in `live`
    Source prefix
    Source raw
    Source form
    Source root
    void* kept                  # memory to free: each piece begins with the address of the next
    bint no_memory


cdef inline bint is_null(const Source* source, int64_t i) noexcept nogil:
    i += source.shift
    return source.validity != NULL and not (source.validity[i >> 3] >> (i & 7)) & 1


# The place of row i's text in `offsets`.
cdef inline int64_t text_place(const Source* source, int64_t i) noexcept nogil:
    i += source.shift
    return i if source.entries == NULL else source.entries[i]


# Prefetches memory: rows are written from the last to the first, and a message has more columns than the processor can
# follow by itself.
cdef inline void foresee(const void* p) noexcept nogil:
    __builtin_prefetch(<const uint8_t*>p - FORESIGHT)


cdef bint meet_nanos(Sources* sources, int index, int64_t row) noexcept nogil
cdef bint bind_root(Sources* sources, const ArrowArray* array) noexcept nogil
cdef uint8_t* keep(Sources* sources, int64_t size) noexcept nogil
cdef void free_kept(Sources* sources) noexcept nogil
