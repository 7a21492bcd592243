# Reads forms: how a value is written.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from schema_mapping.json.kernel.tables cimport Tables

cdef class Forms:
    cdef Tables tables
    cdef uint32_t escapes
    cdef uint32_t spaces
    cdef int32_t indent
    cdef int style
    cdef bint nulls
    cdef int32_t* entries       # of all orders
    cdef int64_t entry_count
    cdef int64_t entry_room
    cdef int32_t* order_start   # by object: its order in `entries`, or -1
    cdef int32_t* order_size
    cdef uint8_t* is_null       # by member: whether it differs from `nulls`
    cdef uint8_t* text          # of the last form
    cdef int64_t text_size
    cdef int64_t text_room

    cdef bint read(self, const uint8_t* text, int64_t size) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef const uint8_t* read_part(self, const uint8_t* p, const uint8_t* end) noexcept nogil
    cdef bint read_word(self, const uint8_t* p, int64_t size) noexcept nogil
    cdef bint push(self, int32_t entry) noexcept nogil
