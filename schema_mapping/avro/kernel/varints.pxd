# Avro's numbers of variable length: zigzag, seven bits a byte, the lowest first.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.avro.kernel.reading cimport BAD_VARINT, Reading, TRUNCATED, fail

cdef enum:
    LONGEST_INT = 5
    LONGEST_LONG = 10


cdef inline int64_t unzigzag(uint64_t value) noexcept nogil:
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


# Reads a number of at most `longest` bytes. It is loose if a shorter form means the same, or bits are cut off.
cdef inline const uint8_t* read_long_varint(
    Reading* r, const uint8_t* p, int longest, int64_t* value
) noexcept nogil:
    cdef const uint8_t* start = p
    cdef uint64_t result = 0
    cdef uint64_t byte = 0x80
    cdef int size = 0
    while byte >= 0x80:
        if size == longest:
            return fail(r, BAD_VARINT, start)
        if p >= r.end:
            return fail(r, TRUNCATED, start)
        byte = p[0]
        p += 1
        result |= (byte & 0x7F) << (7 * size)
        size += 1
    if (byte == 0 and size > 1) or (size == LONGEST_LONG and byte > 1):
        r.loose = True
    if longest == LONGEST_INT and result >> 32:
        r.loose = True
        result = <uint32_t>result
    value[0] = unzigzag(result)
    return p


cdef inline const uint8_t* read_long(Reading* r, const uint8_t* p, int64_t* value) noexcept nogil:
    cdef uint64_t first, second
    if r.end - p >= 2:
        first = p[0]
        if first < 0x80:
            value[0] = unzigzag(first)
            return p + 1
        second = p[1]
        if 0 < second < 0x80:
            value[0] = unzigzag((first & 0x7F) | second << 7)
            return p + 2
    return read_long_varint(r, p, LONGEST_LONG, value)


cdef inline const uint8_t* read_int(Reading* r, const uint8_t* p, int64_t* value) noexcept nogil:
    if p < r.end and p[0] < 0x80:
        value[0] = unzigzag(p[0])
        return p + 1
    return read_long_varint(r, p, LONGEST_INT, value)


cdef inline uint8_t* write_varint(uint8_t* p, uint64_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        p += 1
        value >>= 7
    p[0] = <uint8_t>value
    return p + 1
