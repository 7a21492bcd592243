# cython: language_level=3
"""Parquet's hybrid of runs and packed bits (Encodings.md, RLE = 3): levels, and places in dictionaries."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put_varint

cdef enum:
    GROUP = 8               # packed values come in groups
    MOST_PACKED = 504       # 63 groups: their header is one byte

ctypedef fused small:
    uint8_t
    uint32_t


cdef inline int bits_for(uint64_t highest) noexcept nogil:
    """How many bits a number takes."""
    cdef int bits = 0
    while highest:
        bits += 1
        highest >>= 1
    return bits


cdef inline void pack(const small* values, int64_t count, int bits, uint8_t* at) noexcept nogil:
    """Pack values of up to 32 bits, the lowest bit first. It may write 4 bytes beyond the last one."""
    cdef uint64_t gathered = 0
    cdef uint32_t word
    cdef int held = 0
    cdef int64_t index
    for index in range(count):
        gathered |= <uint64_t>values[index] << held
        held += bits
        if held >= 32:
            word = <uint32_t>gathered
            memcpy(at, &word, 4)
            at += 4
            gathered >>= 32
            held -= 32
    word = <uint32_t>gathered
    memcpy(at, &word, 4)


cdef inline bint _is_run(const small* values) noexcept nogil:
    """Whether a group is of one value."""
    return (values[0] == values[1] and values[0] == values[2] and values[0] == values[3] and values[0] == values[4]
            and values[0] == values[5] and values[0] == values[6] and values[0] == values[7])


cdef inline int put_run(Bytes* out, uint32_t value, int64_t count, int bits) except -1 nogil:
    """One value, so many times."""
    cdef int width = (bits + 7) >> 3
    put_varint(out, <uint64_t>count << 1)
    memcpy(extend(out, width), &value, <size_t>width)
    return 0


cdef inline int _put_packed(Bytes* out, const small* values, int64_t count, int bits) except -1 nogil:
    cdef small last[GROUP]
    cdef int64_t whole = count & ~7, groups = (count + 7) >> 3
    cdef uint8_t* at
    cdef int index
    put_varint(out, <uint64_t>groups << 1 | 1)
    at = extend(out, groups * bits)
    pack(values, whole, bits, at)
    if whole < count:
        for index in range(GROUP):
            last[index] = values[whole + index] if whole + index < count else 0
        pack(last, GROUP, bits, at + whole // GROUP * bits)
    return 0


cdef inline int put_runs(Bytes* out, const small* values, int64_t count, int bits) except -1 nogil:
    """Values of so many bits: eight equal ones and more as a run, the others packed."""
    cdef int64_t start = 0, end
    while start < count:
        end = start + 1
        while end < count and values[end] == values[start]:
            end += 1
        if end - start >= GROUP:
            put_run(out, values[start], end - start, bits)
            start = end
            continue
        end = start + GROUP
        while end < count and end - start < MOST_PACKED and not (end + GROUP <= count and _is_run(values + end)):
            end += GROUP
        end = min(end, count)
        _put_packed(out, values + start, end - start, bits)
        start = end
    return 0
