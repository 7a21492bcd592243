# Scalars whose column has other bytes than the value: times, decimals and uuids.

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    typedef __int128 archiver_int128;
    static inline archiver_int128 archiver_tens(int digits) {
        archiver_int128 power = 1;
        while (digits-- > 0) power *= 10;
        return power;
    }
    """
    ctypedef long long int128 "archiver_int128"
    int128 tens "archiver_tens"(int digits) noexcept nogil

cdef enum:
    DAY_MILLIS = 86400000
    LOWEST_DATE = -719162       # 0001-01-01
    HIGHEST_DATE = 2932896      # 9999-12-31

cdef int64_t DAY_MICROS
cdef int64_t LOWEST_MILLIS
cdef int64_t HIGHEST_MILLIS
cdef int64_t LOWEST_MICROS
cdef int64_t HIGHEST_MICROS


cdef bint read_decimal(const uint8_t* p, int64_t size, int digits, int128* value) noexcept nogil
cdef bint is_shortest(const uint8_t* p, int64_t size) noexcept nogil
cdef int write_decimal_bytes(uint8_t* out, int128 value) noexcept nogil
cdef void write_decimal_fixed(uint8_t* out, int128 value, int64_t size) noexcept nogil
cdef bint read_uuid(const uint8_t* text, uint8_t* out) noexcept nogil
cdef void write_uuid(uint8_t* out, const uint8_t* uuid) noexcept nogil
