# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Doubles as JSON numbers and back, bit for bit: the shortest text that reads as the same double.

What people write by hand (whole numbers, few decimals) is done here, by divisions that IEEE 754 rounds correctly; for
the rest Python's own conversion is asked, which holds the GIL for it.
"""

from libc.math cimport rint
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, strlen

from schema_mapping.kernel.wire cimport write_decimal

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind)
    double PyOS_string_to_double(const char* text, char** end, object overflow_exception) except? -1.0
    void PyMem_Free(void* memory)

cdef enum:
    MOST_DECIMALS = 16
    MOST_POWER = 22     # the largest power of ten that is a double

cdef double EXACT = 9007199254740992.0  # 2**53
cdef double POWERS[23]


cdef void fill_powers() noexcept:
    cdef int i
    for i in range(MOST_POWER + 1):
        POWERS[i] = float("1e%d" % i)


fill_powers()


cdef int write_number(uint8_t* out, uint64_t bits) noexcept nogil:
    # The text's size; 0 when memory is out. The number is finite.
    cdef double value
    cdef double scaled
    cdef int decimals
    memcpy(&value, &bits, 8)
    if bits == <uint64_t>1 << 63:
        memcpy(out, b"-0.0", 4)
        return 4
    if -EXACT < value < EXACT:
        for decimals in range(MOST_DECIMALS + 1):
            scaled = rint(value * POWERS[decimals])
            if not -EXACT < scaled < EXACT:
                break
            if scaled / POWERS[decimals] == value:
                return write_scaled(out, <int64_t>scaled, decimals)
    return ask_python(out, value)


cdef int write_scaled(uint8_t* out, int64_t scaled, int decimals) noexcept nogil:
    # `scaled` divided by that power of ten, which is not zero where there are decimals.
    cdef uint8_t digits[24]
    cdef int size, whole
    cdef int at = 0
    if decimals == 0:
        return write_decimal(out, scaled)
    if scaled < 0:
        out[0] = b"-"
        at = 1
        scaled = -scaled
    size = write_decimal(digits, scaled)
    whole = size - decimals
    if whole <= 0:
        memcpy(out + at, b"0.", 2)
        at += 2
        while whole < 0:
            out[at] = b"0"
            at += 1
            whole += 1
        memcpy(out + at, digits, size)
        return at + size
    memcpy(out + at, digits, whole)
    out[at + whole] = b"."
    memcpy(out + at + whole + 1, digits + whole, decimals)
    return at + size + 1


cdef int ask_python(uint8_t* out, double value) noexcept with gil:
    cdef char* text = PyOS_double_to_string(value, b"r", 0, 0, NULL)
    cdef int size
    if text == NULL:
        return 0
    size = <int>strlen(text)
    if size > NUMBER_ROOM:
        size = 0
    memcpy(out, text, size)
    PyMem_Free(text)
    return size


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef bint read_number(const uint8_t* p, int64_t size, uint64_t* bits) noexcept nogil:
    # False where the text is no number of JSON, or none that a double holds.
    cdef const uint8_t* end = p + size
    cdef const uint8_t* start = p
    cdef uint64_t digits = 0
    cdef int64_t decimals = 0
    cdef bint simple = True
    cdef bint negative = False
    cdef double value
    if p < end and p[0] == b"-":
        negative = True
        p += 1
    if p == end or not is_digit(p[0]) or (p[0] == b"0" and end - p > 1 and is_digit(p[1])):
        return False
    while p < end and is_digit(p[0]):
        if digits >= <uint64_t>1 << 50:
            simple = False
        else:
            digits = digits * 10 + p[0] - 48
        p += 1
    if p < end and p[0] == b".":
        p += 1
        if p == end or not is_digit(p[0]):
            return False
        while p < end and is_digit(p[0]):
            if digits >= <uint64_t>1 << 50:
                simple = False
            else:
                digits = digits * 10 + p[0] - 48
            decimals += 1
            p += 1
    if p < end and (p[0] == b"e" or p[0] == b"E"):
        simple = False
        p += 1
        if p < end and (p[0] == b"+" or p[0] == b"-"):
            p += 1
        if p == end:
            return False
        while p < end and is_digit(p[0]):
            p += 1
    if p != end:
        return False
    if simple and digits < <uint64_t>1 << 53 and decimals <= MOST_POWER:
        value = <double>digits / POWERS[decimals]
        if negative:
            value = -value
        memcpy(bits, &value, 8)
        return True
    return read_by_python(start, size, bits)


cdef bint read_by_python(const uint8_t* p, int64_t size, uint64_t* bits) noexcept with gil:
    cdef bytes text
    cdef double value
    try:
        text = (<const char*>p)[:size]
        value = PyOS_string_to_double(text, NULL, OverflowError)
    except (ValueError, OverflowError, MemoryError):
        return False
    memcpy(bits, &value, 8)
    return True
