from libc.stdint cimport uint64_t

# A decimal: digits * 10**exponent.
cdef struct Decimal:
    uint64_t digits
    int exponent

cdef Decimal shortest_decimal(uint64_t bits) noexcept nogil
cdef bint nearest_double(const Decimal* decimal, uint64_t* bits) noexcept nogil
