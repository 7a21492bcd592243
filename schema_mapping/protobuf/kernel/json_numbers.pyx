# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Doubles as JSON numbers and back, in the form of ECMAScript and RFC 8785, except for negative zero.

What the fast way back can't decide (decimals half-way between doubles, subnormals) is left to Python's own conversion,
which holds the GIL.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from schema_mapping.kernel.octets cimport write_decimal
from schema_mapping.protobuf.kernel.shortest cimport Decimal, nearest_double, shortest_decimal

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* text, char** end, object overflow_exception) except? -1.0

cdef enum:
    MOST_PLAIN = 21         # digits before the point, at most, without an exponent
    MOST_ZEROS = 6          # zeros after the point, at most, without an exponent
    MOST_DIGITS = 19        # that always fit in 64 bits
    LONGEST = 800           # a shorter text has no more digits than matter

cdef uint64_t SIGN = <uint64_t>1 << 63


cdef int write_number(uint8_t* out, uint64_t bits) noexcept nogil:
    # The number must be finite. Returns the text's size.
    cdef uint8_t digits[24]
    cdef Decimal decimal
    cdef int size, whole
    cdef int at = 0
    if bits & SIGN:
        out[0] = b"-"
        at = 1
        bits &= ~SIGN
    if bits == 0:
        memcpy(out + at, b"0.0", 3)
        return at + 3 if at else 1
    decimal = shortest_decimal(bits)
    size = write_decimal(digits, <int64_t>decimal.digits)
    whole = size + decimal.exponent
    if size <= whole <= MOST_PLAIN:
        memcpy(out + at, digits, size)
        memset(out + at + size, 48, whole - size)
        return at + whole
    if 0 < whole <= MOST_PLAIN:
        return at + write_pointed(out + at, digits, whole, size)
    if -MOST_ZEROS < whole <= 0:
        memcpy(out + at, b"0.", 2)
        memset(out + at + 2, 48, -whole)
        memcpy(out + at + 2 - whole, digits, size)
        return at + 2 - whole + size
    at += write_pointed(out + at, digits, 1, size)
    out[at] = b"e"
    out[at + 1] = b"+"
    at += 2 if whole > 0 else 1
    return at + write_decimal(out + at, whole - 1)


cdef inline int write_pointed(uint8_t* out, const uint8_t* digits, int whole, int size) noexcept nogil:
    # Writes digits, with a point after the first `whole` ones if others follow.
    memcpy(out, digits, whole)
    if size == whole:
        return size
    out[whole] = b"."
    memcpy(out + whole + 1, digits + whole, size - whole)
    return size + 1


# The position in a number that is being read, its first 19 digits, and how many digits there were.
cdef struct Reading:
    const uint8_t* p
    const uint8_t* end
    uint64_t digits
    int64_t count


cdef bint read_number(const uint8_t* p, int64_t size, uint64_t* bits) noexcept nogil:
    # Returns False if the text is no JSON number, or is too large for a double.
    cdef Reading r
    cdef Decimal decimal
    cdef int64_t exponent = 0
    cdef uint64_t sign = 0
    cdef const uint8_t* start = p
    r.p = p
    r.end = p + size
    r.digits = 0
    r.count = 0
    if r.p < r.end and r.p[0] == b"-":
        sign = SIGN
        r.p += 1
    if r.end - r.p > 1 and r.p[0] == b"0" and is_digit(r.p[1]):
        return False
    if not read_digits(&r):
        return False
    if r.p < r.end and r.p[0] == b".":
        r.p += 1
        p = r.p
        if not read_digits(&r):
            return False
        exponent = p - r.p
    if r.p < r.end and (r.p[0] | 32) == b"e":
        r.p += 1
        if not read_exponent(&r, &exponent):
            return False
    if r.p != r.end:
        return False
    decimal.digits = r.digits
    if r.count <= MOST_DIGITS and -LONGEST < exponent < LONGEST:
        decimal.exponent = <int>exponent
        if nearest_double(&decimal, bits):
            bits[0] |= sign
            return True
    return ask_python(start, size, bits)


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef bint read_digits(Reading* r) noexcept nogil:
    # Reads at least one digit. Leading zeros don't count.
    cdef const uint8_t* first = r.p
    while r.p < r.end and is_digit(r.p[0]):
        if r.count < MOST_DIGITS:
            r.digits = r.digits * 10 + r.p[0] - 48
        r.count += r.digits != 0
        r.p += 1
    return r.p > first


cdef bint read_exponent(Reading* r, int64_t* exponent) noexcept nogil:
    # Adds the number after the e to `exponent`.
    cdef bint negative = False
    cdef int64_t written = 0
    cdef const uint8_t* first
    if r.p < r.end and (r.p[0] == b"-" or r.p[0] == b"+"):
        negative = r.p[0] == b"-"
        r.p += 1
    first = r.p
    while r.p < r.end and is_digit(r.p[0]):
        if written < 1_000_000:
            written = written * 10 + r.p[0] - 48
        r.p += 1
    exponent[0] += -written if negative else written
    return r.p > first


cdef bint ask_python(const uint8_t* p, int64_t size, uint64_t* bits) noexcept with gil:
    cdef char text[LONGEST + 1]
    cdef double value
    try:
        if size <= LONGEST:
            memcpy(text, p, size)
            text[size] = 0
            value = PyOS_string_to_double(text, NULL, OverflowError)
        else:
            value = PyOS_string_to_double((<const char*>p)[:size], NULL, OverflowError)
    except (ValueError, OverflowError, MemoryError):
        return False
    memcpy(bits, &value, 8)
    return True
