# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the shortest decimal that reads as a double, and the double nearest to a decimal.

The first uses Raffaello Giulietti's Schubfach. The second multiplies in 128 bits, as Daniel Lemire's reader does, and
reports when these can't tell which of two doubles is nearer.
"""

from libc.stdint cimport int64_t, uint64_t

from schema_mapping.protobuf.kernel.powers cimport (
    LEAST_POWER, MOST_POWER, Power, log2_of_power, power_of_ten, uint128,
)

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept nogil

cdef enum:
    FRACTION = 52       # bits of a double's fraction
    BIAS = 1075         # the exponent bits minus BIAS are the q of c * 2**q, where c is an integer
    SLACK = 4           # an upper bound of the error of a 128-bit product


cdef Decimal shortest_decimal(uint64_t bits) noexcept nogil:
    # The double must be positive and finite.
    cdef uint64_t fraction = bits & ((<uint64_t>1 << FRACTION) - 1)
    cdef int biased = <int>(bits >> FRACTION)
    cdef uint64_t c = fraction | <uint64_t>1 << FRACTION if biased else fraction
    cdef int q = (biased if biased else 1) - BIAS
    cdef bint closer = fraction == 0 and biased > 1     # the double below is closer than the one above
    cdef int k = <int>((<int64_t>q * 1262611 - (524031 if closer else 0)) >> 22)
    cdef int h = q + log2_of_power(-k) + 1
    cdef const Power* power = power_of_ten(-k)
    cdef uint64_t low = scaled(power, (4 * c - 2 + closer) << h) + (c & 1)
    cdef uint64_t middle = scaled(power, (4 * c) << h)
    cdef uint64_t high = scaled(power, (4 * c + 2) << h) - (c & 1)
    cdef Decimal result
    result.digits = middle >> 2
    result.exponent = k
    if result.digits >= 10 and choose(low, high, 40, result.digits // 10, &result.digits):
        result.exponent += 1
    elif not choose(low, high, 4, result.digits, &result.digits):
        # Either both neighbours read as the double, or neither does: take the nearer one.
        if (middle & 3) + (result.digits & 1) > 2:
            result.digits += 1
    while result.digits % 10 == 0:
        result.digits //= 10
        result.exponent += 1
    return result


cdef inline bint choose(uint64_t low, uint64_t high, uint64_t unit, uint64_t below, uint64_t* digits) noexcept nogil:
    # Returns whether exactly one of the two neighbouring decimals is within the bounds, and takes it.
    cdef bint down = low <= unit * below
    cdef bint up = unit * below + unit <= high
    if down != up:
        digits[0] = below + up
    return down != up


cdef inline uint64_t scaled(const Power* power, uint64_t number) noexcept nogil:
    # The upper bits of the product. The lowest bit says whether other bits were lost.
    cdef uint128 carried = ((<uint128>power.low * number) >> 64) + <uint128>power.high * number
    return <uint64_t>(carried >> 64) | (<uint64_t>carried > 1)


cdef bint nearest_double(const Decimal* decimal, uint64_t* bits) noexcept nogil:
    # Returns False if more than 128 bits are needed, or the result is subnormal or no double.
    cdef const Power* power
    cdef uint128 product, rest, half
    cdef uint64_t number = decimal.digits
    cdef uint64_t result
    cdef int zeros, size, exponent
    if number == 0:
        bits[0] = 0
        return True
    if not LEAST_POWER <= decimal.exponent <= MOST_POWER:
        return False
    zeros = __builtin_clzll(number)
    number <<= zeros
    power = power_of_ten(decimal.exponent)
    product = <uint128>number * power.high + ((<uint128>number * power.low) >> 64)
    size = 128 if product >> 127 else 127
    result = <uint64_t>(product >> (size - FRACTION - 1))
    rest = product - (<uint128>result << (size - FRACTION - 1))
    half = <uint128>1 << (size - FRACTION - 2)
    if half - SLACK <= rest <= half + SLACK:
        return False
    exponent = size - FRACTION - 1 + log2_of_power(decimal.exponent) - zeros - 63
    result += rest > half
    if result >> (FRACTION + 1):
        result >>= 1
        exponent += 1
    exponent += BIAS
    if not 0 < exponent < 2047:
        return False
    bits[0] = (result & ((<uint64_t>1 << FRACTION) - 1)) | <uint64_t>exponent << FRACTION
    return True
