from libc.stdint cimport int64_t, uint8_t, uint64_t

from schema_mapping.protobuf.kernel.sources cimport Sources
from schema_mapping.protobuf.kernel.writer cimport Writer

cdef enum:
    FLAT_ROWS = 128         # of a batch, at the most
    FLAT_FEWEST = 8         # for fewer rows a batch doesn't pay
    FLAT_BYTES = 1 << 17    # of a batch's rows

# A batch of rows, each written from its end in a slot of its own.
cdef struct Flat:
    uint8_t* slots              # NULL where rows aren't flat
    int64_t rows                # of a batch
    int64_t fixed               # the most that a row takes beside its texts
    bint plain                  # no row is null, kept raw or of another form
    uint8_t* places[FLAT_ROWS]  # where a row starts so far
    uint8_t* ends[FLAT_ROWS]
    uint64_t values[FLAT_ROWS]  # of the column at hand
    uint64_t masks[FLAT_ROWS]   # all bits where the value is written, none where not


cdef bint is_flat(Writer* w, Flat* f) noexcept nogil
cdef uint8_t* write_flat(Writer* w, Flat* f, int64_t first, int n, uint8_t* p) noexcept nogil
