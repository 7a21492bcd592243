# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Doubles as the shortest decimal text, in the styles of JSON writers; and back.

The digits are found by Schubfach (Raffaello Giulietti, "The Schubfach way to render doubles"), doubles by the method of
Eisel and Lemire ("Number parsing at a gigabyte per second"), both with 128 bits of powers of ten.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport strtod
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    typedef unsigned __int128 archiver_uint128;
    """
    ctypedef unsigned long long uint128 "archiver_uint128"
    int __builtin_clzll(unsigned long long) noexcept nogil

cdef enum:
    LEAST_POWER = -342
    MOST_POWER = 324
    POWERS = MOST_POWER - LEAST_POWER + 1
    LONGEST_TEXT = 1024     # of a number that is read by the C library
    MOST_DIGITS = 19
    FAR = 100000            # an exponent beyond all doubles

# A power of ten as 128 bits with the highest bit set: rounded up, and as parsing needs it.
cdef uint64_t up_high[POWERS]
cdef uint64_t up_low[POWERS]
cdef uint64_t high[POWERS]
cdef uint64_t low[POWERS]

# A number is written without an exponent if `least` <= the exponent of its first digit < `most`.
cdef struct Style:
    int32_t least
    int32_t most
    bint point_zero         # whole numbers end in .0
    uint8_t letter
    bint plus               # exponents from 0 on have a sign
    int32_t exponent_digits
    bint mantissa_zero      # a single digit before an exponent is followed by .0

cdef Style styles[STYLES]
cdef double exact_powers[23]


def _fill():
    for power in range(LEAST_POWER, MOST_POWER + 1):
        five = 5 ** abs(power)
        if power >= 0:
            shift = 128 - five.bit_length()
            exact = five << shift if shift >= 0 else five >> -shift
            above = exact if shift >= 0 or exact << -shift == five else exact + 1
        else:
            bits = (five - 1).bit_length()
            exact = (1 << (bits + 127 if power >= -27 else 2 * bits + 128)) // five + 1
            exact >>= exact.bit_length() - 128
            above = -(-(1 << (five.bit_length() + 127)) // five)
            above >>= above.bit_length() - 128
        at = power - LEAST_POWER
        up_high[at], up_low[at] = above >> 64, above & (2 ** 64 - 1)
        high[at], low[at] = exact >> 64, exact & (2 ** 64 - 1)
    for power in range(23):
        exact_powers[power] = 10.0 ** power


STYLE_NAMES = (
    *("javascript", "python", "java", "rust", "orjson", "dotnet", "ruby", "php", "php_point"),
    *("newtonsoft", "nlohmann", "rapidjson"),
)
_fill()
styles[0] = Style(-6, 21, False, b"e", True, 1, False)
styles[1], styles[2] = Style(-4, 16, True, b"e", True, 2, False), Style(-3, 7, True, b"E", False, 1, True)
styles[3], styles[4] = Style(-5, 16, True, b"e", False, 1, False), Style(-5, 16, True, b"e", True, 1, False)
styles[5], styles[6] = Style(-4, 15, False, b"E", True, 2, False), Style(-4, 16, True, b"e", True, 2, True)
styles[7], styles[8] = Style(-4, 17, False, b"e", True, 1, True), Style(-4, 17, True, b"e", True, 1, True)
styles[9], styles[10] = Style(-4, 15, True, b"E", True, 2, False), Style(-4, 15, True, b"e", True, 2, False)
styles[11] = Style(-6, 21, True, b"e", False, 1, False)


cdef const uint8_t* read_few_digits(const uint8_t* p, const uint8_t* end, NumberText* number) noexcept nogil:
    # Reads digits and a point, at most 19 digits. Returns their end, or p for what `read_digits` must read.
    cdef const uint8_t* start = p
    cdef const uint8_t* last
    cdef uint64_t digits = 0
    cdef int64_t before, count
    cdef int64_t after = 0, leading = 0, zeros = 0
    while p < end and 48 <= p[0] <= 57:
        digits = 10 * digits + (p[0] - 48)
        p += 1
    before = count = p - start
    last = p - 1
    if p + 1 < end and p[0] == b"." and 48 <= p[1] <= 57:
        p += 1
        last = p
        while p < end and 48 <= p[0] <= 57:
            digits = 10 * digits + (p[0] - 48)
            p += 1
        after = p - last
        count += after
        number.has_point = True
        number.ends_in_zero = (p - 1)[0] == 48
        last = p - 1
    elif p < end and p[0] == b".":
        return start
    if count > MOST_DIGITS:
        number.has_point = number.ends_in_zero = False
        return start
    number.digits = digits
    number.fraction = <int32_t>after
    number.is_exact = True
    number.power = -after
    if digits == 0:
        number.count = 1
        return p
    if start[0] == 48:
        leading = 1
        while start[1 + leading] == 48:
            leading += 1
    while last[0] == 48 or last[0] == b".":
        zeros += last[0] == 48
        last -= 1
    number.count = <int32_t>(count - leading - zeros)
    number.scale = <int32_t>(before - 1 - leading)
    return p


cdef const uint8_t* read_digits(const uint8_t* p, const uint8_t* end, NumberText* number) noexcept nogil:
    # Reads digits and a point, of any length. Returns their end, or NULL with the place of the fault in `end`.
    cdef int64_t seen = 0       # significant digits
    cdef int64_t zeros = 0      # zeros after the last digit that isn't one
    cdef int64_t before = 0     # digits before the point
    cdef int64_t after = 0
    cdef int64_t first = -1     # digits before the first significant one
    cdef int digit
    while p < end:
        digit = p[0] - 48
        if p[0] == b"." and not number.has_point:
            number.has_point = True
            p += 1
            if p >= end or not 48 <= p[0] <= 57:
                number.end = p
                return NULL
            continue
        if digit < 0 or digit > 9:
            break
        if number.has_point:
            after += 1
        else:
            before += 1
        if digit or first >= 0:
            if first < 0:
                first = before + after - 1
            seen += 1
            zeros = 0 if digit else zeros + 1
            if seen <= MOST_DIGITS:
                number.digits = 10 * number.digits + digit
        p += 1
    number.ends_in_zero = (p - 1)[0] == 48 and after > 0
    number.fraction = <int32_t>min(after, FAR)
    number.is_exact = seen <= MOST_DIGITS
    number.count = <int32_t>min(max(seen - zeros, <int64_t>1), FAR)
    number.power = -after + max(seen - MOST_DIGITS, <int64_t>0)
    number.scale = <int32_t>max(min(0 if first < 0 else before - 1 - first, FAR), -FAR)
    return p


cdef const uint8_t* read_exponent(const uint8_t* p, const uint8_t* end, NumberText* number) noexcept nogil:
    # Reads the exponent whose letter is at p. Returns its end, or NULL with the place of the fault in `end`.
    cdef int64_t exponent = 0
    number.has_exponent = True
    number.letter = p[0]
    p += 1
    if p < end and (p[0] == b"+" or p[0] == b"-"):
        number.has_plus = p[0] == b"+"
        number.is_below_zero = p[0] == b"-"
        p += 1
    if p >= end or not 48 <= p[0] <= 57:
        number.end = p
        return NULL
    while p < end and 48 <= p[0] <= 57:
        if exponent < FAR:
            exponent = 10 * exponent + p[0] - 48
        if number.exponent_digits < FAR:
            number.exponent_digits += 1
        p += 1
    if number.is_below_zero:
        exponent = -exponent
    number.power += exponent
    if number.digits:
        number.scale = <int32_t>max(min(number.scale + exponent, <int64_t>FAR), <int64_t>-FAR)
    return p


cdef const uint8_t* read_number_text(const uint8_t* p, const uint8_t* end, NumberText* number) noexcept nogil:
    # Reads a number as RFC 8259 writes it. Returns its end, or NULL with the place of the fault in `end`.
    cdef const uint8_t* start
    memset(number, 0, sizeof(NumberText))
    number.start = p
    if p < end and p[0] == b"-":
        number.is_negative = True
        p += 1
    if p >= end or not 48 <= p[0] <= 57 or (p[0] == 48 and p + 1 < end and 48 <= p[1] <= 57):
        number.end = p
        return NULL
    start = p
    p = read_few_digits(start, end, number)
    if p == start:
        p = read_digits(start, end, number)
        if p == NULL:
            return NULL
    if p < end and (p[0] | 0x20) == b"e":
        p = read_exponent(p, end, number)
        if p == NULL:
            return NULL
    number.end = p
    return p


cdef bint has_style(const NumberText* number, const Style* style) noexcept nogil:
    cdef int32_t size = number.scale if number.scale >= 0 else -number.scale
    cdef int32_t width = 1 if size < 10 else 2 if size < 100 else 3
    if style.least <= number.scale < style.most:
        if number.has_exponent:
            return False
        if number.count - 1 > number.scale:
            return not number.ends_in_zero
        return (number.has_point and number.fraction == 1) if style.point_zero else not number.has_point
    if not number.has_exponent or number.letter != style.letter or number.exponent_digits != max(width, style.exponent_digits):
        return False
    if number.is_below_zero != (number.scale < 0) or number.has_plus != (style.plus and number.scale >= 0):
        return False
    if number.count == 1:
        return (number.fraction == 1 and number.ends_in_zero) if style.mantissa_zero else not number.has_point
    return number.fraction == number.count - 1


cdef uint32_t styles_of(const NumberText* number) noexcept nogil:
    # The styles that may have written the text, as bits.
    cdef uint32_t mask = 0
    cdef int i
    if not number.has_exponent and -3 <= number.scale < 7 and number.count - 1 > number.scale:
        return 0 if number.ends_in_zero else <uint32_t>ALL_STYLES
    for i in range(STYLES):
        mask |= <uint32_t>has_style(number, &styles[i]) << i
    return mask


cdef bint read_by_library(const NumberText* number, double* value) noexcept nogil:
    cdef char text[LONGEST_TEXT + 1]
    cdef int64_t size = number.end - number.start
    if size > LONGEST_TEXT:
        return False
    memcpy(text, number.start, size)
    text[size] = 0
    value[0] = strtod(text, NULL)
    return True


cdef bint read_double(const NumberText* number, double* value) noexcept nogil:
    # Returns False if the text is too long. Beyond the largest double is infinity.
    cdef uint64_t digits = number.digits
    cdef uint64_t mantissa, bits, above, below, more
    cdef int64_t power = number.power
    cdef int64_t exponent
    cdef uint128 product
    cdef int zeros, upper
    if digits == 0:
        value[0] = -0.0 if number.is_negative else 0.0
        return True
    if not number.is_exact or power < -300 or power > 300:
        return read_by_library(number, value)
    if digits < <uint64_t>1 << 53 and -22 <= power <= 22:
        value[0] = <double>digits * exact_powers[power] if power >= 0 else <double>digits / exact_powers[-power]
        if number.is_negative:
            value[0] = -value[0]
        return True
    zeros = __builtin_clzll(digits)
    digits <<= zeros
    product = <uint128>digits * high[power - LEAST_POWER]
    above, below = <uint64_t>(product >> 64), <uint64_t>product
    if above & 0x1FF == 0x1FF:
        more = <uint64_t>((<uint128>digits * low[power - LEAST_POWER]) >> 64)
        below += more
        above += below < more
    if below == <uint64_t>-1 and not -27 <= power <= 55:
        return read_by_library(number, value)
    upper = <int>(above >> 63)
    mantissa = above >> (upper + 9)
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0 or exponent >= 0x7FE:
        return read_by_library(number, value)
    if below <= 1 and -4 <= power <= 23 and mantissa & 3 == 1 and mantissa << (upper + 9) == above:
        mantissa &= ~<uint64_t>1
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >= <uint64_t>2 << 52:
        mantissa = <uint64_t>1 << 52
        exponent += 1
    bits = mantissa & ~(<uint64_t>1 << 52) | <uint64_t>exponent << 52 | <uint64_t>number.is_negative << 63
    memcpy(value, &bits, 8)
    return True


cdef inline uint64_t rounded_to_odd(uint64_t g1, uint64_t g0, uint64_t cp) noexcept nogil:
    cdef uint128 x = <uint128>g0 * cp
    cdef uint128 y = <uint128>g1 * cp + (x >> 64)
    return <uint64_t>(y >> 64) | (<uint64_t>y > 1)


cdef uint64_t shortest(uint64_t bits, int32_t* power) noexcept nogil:
    # The digits of a positive finite double, which is digits * 10 ** power.
    cdef uint64_t fraction = bits & ((<uint64_t>1 << 52) - 1)
    cdef int32_t biased = <int32_t>(bits >> 52 & 0x7FF)
    cdef uint64_t c, lower, upper, middle, s, tens
    cdef uint64_t vbl, vb, vbr
    cdef int32_t q, k, h
    cdef bint is_odd, is_closer, up_inside, wp_inside
    if biased:
        c, q = fraction | <uint64_t>1 << 52, biased - 1075
        if 0 <= -q < 53 and c & ((<uint64_t>1 << -q) - 1) == 0:
            power[0] = 0
            return c >> -q
    else:
        c, q = fraction, -1074
    is_odd = c & 1
    is_closer = fraction == 0 and biased > 1
    k = (q * 1262611 - (524031 if is_closer else 0)) >> 22
    h = q + ((-k * 1741647) >> 19) + 1
    vbl = rounded_to_odd(up_high[-k - LEAST_POWER], up_low[-k - LEAST_POWER], (4 * c - 2 + is_closer) << h)
    vb = rounded_to_odd(up_high[-k - LEAST_POWER], up_low[-k - LEAST_POWER], (4 * c) << h)
    vbr = rounded_to_odd(up_high[-k - LEAST_POWER], up_low[-k - LEAST_POWER], (4 * c + 2) << h)
    lower, upper = vbl + is_odd, vbr - is_odd
    s = vb // 4
    if s >= 10:
        tens = s // 10
        up_inside, wp_inside = lower <= 40 * tens, 40 * tens + 40 <= upper
        if up_inside != wp_inside:
            power[0] = k + 1
            return tens + wp_inside
    power[0] = k
    up_inside, wp_inside = lower <= 4 * s, 4 * s + 4 <= upper
    if up_inside != wp_inside:
        return s + wp_inside
    middle = 4 * s + 2
    return s + <uint64_t>(vb > middle or (vb == middle and s & 1 == 1))


cdef int write_double(uint8_t* out, double value, int style_number) noexcept nogil:
    # Writes at most LONGEST_DOUBLE bytes, and returns how many; 0 for a number that JSON doesn't have.
    cdef const Style* style = &styles[style_number]
    cdef uint8_t* start = out
    cdef uint8_t digits[24]
    cdef uint64_t bits, rest
    cdef int32_t power = 0
    cdef int32_t scale = 0
    cdef int32_t size
    cdef int count = 0
    cdef int pair, i
    memcpy(&bits, &value, 8)
    if bits >> 52 & 0x7FF == 0x7FF:
        return 0
    if bits >> 63:
        out[0] = b"-"
        out += 1
    bits &= ~(<uint64_t>1 << 63)
    rest = shortest(bits, &power) if bits else 0
    while rest and rest % 10 == 0:
        rest //= 10
        power += 1
    while rest >= 100:
        pair = <int>(rest % 100)
        rest //= 100
        digits[count], digits[count + 1] = 48 + <uint8_t>(pair % 10), 48 + <uint8_t>(pair // 10)
        count += 2
    while count == 0 or rest:
        digits[count] = 48 + <uint8_t>(rest % 10)
        rest //= 10
        count += 1
    scale = power + count - 1 if bits else 0
    if style.least <= scale < style.most:
        if scale < 0:
            out[0], out[1] = b"0", b"."
            memset(out + 2, 48, -scale - 1)
            out += 1 - scale
            for i in range(count):
                out[i] = digits[count - 1 - i]
            return <int>(out + count - start)
        for i in range(min(count, scale + 1)):
            out[i] = digits[count - 1 - i]
        if count <= scale:
            memset(out + count, 48, scale + 1 - count)
        out += scale + 1
        if count > scale + 1:
            out[0] = b"."
            for i in range(scale + 1, count):
                out[i - scale] = digits[count - 1 - i]
            out += count - scale
        if count <= scale + 1 and style.point_zero:
            out[0], out[1] = b".", b"0"
            out += 2
        return <int>(out - start)
    out[0] = digits[count - 1]
    out += 1
    if count > 1 or style.mantissa_zero:
        out[0] = b"."
        out += 1
        for i in range(1, count):
            out[i - 1] = digits[count - 1 - i]
        out += count - 1
        if count == 1:
            out[0] = b"0"
            out += 1
    out[0] = style.letter
    out += 1
    if scale < 0 or style.plus:
        out[0] = b"-" if scale < 0 else b"+"
        out += 1
    size = scale if scale >= 0 else -scale
    if size >= 100:
        out[0] = 48 + <uint8_t>(size // 100)
        out += 1
    if size >= 10 or style.exponent_digits > 1:
        out[0] = 48 + <uint8_t>(size // 10 % 10)
        out += 1
    out[0] = 48 + <uint8_t>(size % 10)
    return <int>(out + 1 - start)


def double_text(double value, int style):
    """The text of a double in a style."""
    cdef uint8_t out[LONGEST_DOUBLE]
    return out[:write_double(out, value, style)]


def text_double(bytes text not None):
    """The double that a number's text is read as. None if it is no number, or too long."""
    cdef NumberText number
    cdef double value = 0
    cdef const uint8_t* start = <const uint8_t*>text
    if read_number_text(start, start + len(text), &number) != start + len(text) or not read_double(&number, &value):
        return None
    return value


def text_styles(bytes text not None):
    """The styles that may have written a number's text, as bits."""
    cdef NumberText number
    cdef const uint8_t* start = <const uint8_t*>text
    read_number_text(start, start + len(text), &number)
    return styles_of(&number)
