from libc.stdint cimport int64_t, uint8_t

cdef int64_t most_quoted(const uint8_t* p, const uint8_t* end) noexcept nogil
cdef uint8_t* write_quoted(uint8_t* out, const uint8_t* p, const uint8_t* end) noexcept nogil
cdef int read_escape(const uint8_t* p, const uint8_t* end, uint8_t* out, int* step) noexcept nogil
