from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef uint32_t crc32c(const uint8_t* data, int64_t size) noexcept nogil
