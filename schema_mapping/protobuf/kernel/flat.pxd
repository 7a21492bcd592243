from libc.stdint cimport int64_t, uint8_t, uint64_t

from schema_mapping.protobuf.kernel.sources cimport Sources
from schema_mapping.protobuf.kernel.writer cimport Writer

cdef enum:
    FLAT_ROWS = 128         # in a batch, at most
    FLAT_FEWEST = 8         # a batch of fewer rows isn't worth it
    FLAT_BYTES = 1 << 17    # in a batch's rows

# A batch of rows. Each is written from its end, in its own slot.
cdef struct Flat:
    uint8_t* slots              # NULL if the rows aren't flat
    int64_t rows                # in a batch
    int64_t fixed               # the most bytes that a row takes besides its texts
    bint plain                  # no row is null, kept raw or of another form
    uint8_t* places[FLAT_ROWS]  # where a row starts so far
    uint8_t* ends[FLAT_ROWS]
    uint64_t values[FLAT_ROWS]  # of the current column
    uint64_t masks[FLAT_ROWS]   # all bits set if the value is written, else none


cdef bint is_flat(Writer* w, Flat* f) noexcept nogil
cdef uint8_t* write_flat(Writer* w, Flat* f, int64_t first, int n, uint8_t* p) noexcept nogil
