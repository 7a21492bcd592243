# Compares, copies and searches short runs of bytes without calls.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from schema_mapping.kernel.octets cimport load32, load64


cdef inline uint64_t special_marks(uint64_t octets) noexcept nogil:
    # Marks the high bit of each quote, backslash, control character and byte beyond ASCII. Bytes after the first of
    # them may be marked without a reason.
    cdef uint64_t ones = 0x0101010101010101
    cdef uint64_t quote = octets ^ (ones * 0x22)
    cdef uint64_t slash = octets ^ (ones * 0x5C)
    return ((octets - ones * 0x20) | (quote - ones) | (slash - ones) | octets) & <uint64_t>0x8080808080808080


cdef inline bint is_same(const uint8_t* p, const uint8_t* other, int64_t size) noexcept nogil:
    if size > 16:
        return memcmp(p, other, size) == 0
    if size >= 8:
        return not ((load64(p) ^ load64(other)) | (load64(p + size - 8) ^ load64(other + size - 8)))
    if size >= 4:
        return not ((load32(p) ^ load32(other)) | (load32(p + size - 4) ^ load32(other + size - 4)))
    while size:
        size -= 1
        if p[size] != other[size]:
            return False
    return True


cdef inline void copy_span(uint8_t* out, const uint8_t* p, int64_t size) noexcept nogil:
    # The two don't overlap.
    if size > 16:
        memcpy(out, p, size)
    elif size >= 8:
        memcpy(out, p, 8)
        memcpy(out + size - 8, p + size - 8, 8)
    elif size >= 4:
        memcpy(out, p, 4)
        memcpy(out + size - 4, p + size - 4, 4)
    else:
        while size:
            size -= 1
            out[size] = p[size]


cdef inline const uint8_t* member_end(const uint8_t* p, const uint8_t* end) noexcept nogil:
    # The end of the first of the members that begin at p: the comma after it, or the end.
    cdef int depth = 0
    while p < end:
        if p[0] == 0x22:
            p += 1
            while p < end and p[0] != 0x22:
                p += 2 if p[0] == 0x5C else 1
        elif p[0] == 0x7B or p[0] == 0x5B:
            depth += 1
        elif p[0] == 0x7D or p[0] == 0x5D:
            depth -= 1
        elif p[0] == 0x2C and depth == 0:
            return p
        p += 1
    return end
