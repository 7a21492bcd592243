from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum:
    NUMBER_ROOM = 40    # more bytes than any number's text takes

cdef int write_number(uint8_t* out, uint64_t bits) noexcept nogil
cdef bint read_number(const uint8_t* p, int64_t size, uint64_t* bits) noexcept nogil
