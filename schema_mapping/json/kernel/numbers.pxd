# Numbers as text: what a text says, its double, and a double's text in a style.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    STYLES = 12
    ALL_STYLES = (1 << STYLES) - 1
    LONGEST_DOUBLE = 352    # bytes of any double in any style, and more than a long takes

# A number's text. Its value is `digits` * 10 ** `power`, if all digits are there.
cdef struct NumberText:
    const uint8_t* start
    const uint8_t* end
    uint64_t digits         # at most 19 digits
    int32_t count           # significant digits, without zeros around them; 1 for zero
    int32_t scale           # the exponent of the first significant digit
    int64_t power
    bint is_negative
    bint is_exact           # all its digits are in `digits`
    bint has_point
    bint has_exponent
    bint ends_in_zero       # the last digit after the point is 0
    int32_t fraction        # digits after the point
    uint8_t letter          # of the exponent
    bint has_plus
    bint is_below_zero      # whether the exponent has a minus
    int32_t exponent_digits


cdef const uint8_t* read_number_text(const uint8_t* p, const uint8_t* end, NumberText* number) noexcept nogil
cdef uint32_t styles_of(const NumberText* number) noexcept nogil
cdef bint read_double(const NumberText* number, double* value) noexcept nogil
cdef int write_double(uint8_t* out, double value, int style) noexcept nogil
