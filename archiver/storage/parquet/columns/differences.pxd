# cython: language_level=3
"""Integers as differences (Encodings.md, DELTA_BINARY_PACKED = 5), in blocks of 128 with four widths each."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put_varint, put_zigzag
from archiver.storage.parquet.columns.runs cimport bits_for, pack

cdef enum:
    BLOCK = 128
    MINIS = 4
    MINI = 32               # values of one width


cdef inline void _pack_wide(const uint64_t* values, int bits, uint8_t* at) noexcept nogil:
    """Pack 32 values of more than 32 bits. It may write 8 bytes beyond the last one."""
    cdef uint64_t gathered = 0, value
    cdef int held = 0, index
    for index in range(MINI):
        value = values[index]
        gathered |= value << held
        if held + bits >= 64:
            memcpy(at, &gathered, 8)
            at += 8
            gathered = value >> (64 - held) if held else 0
            held += bits - 64
        else:
            held += bits
    memcpy(at, &gathered, 8)


cdef inline int _put_mini(Bytes* out, const uint64_t* values, int bits) except -1 nogil:
    cdef uint32_t narrow[MINI]
    cdef uint8_t* at = extend(out, MINI // 8 * bits)
    cdef int index
    if bits > 32:
        _pack_wide(values, bits, at)
        return 0
    for index in range(MINI):
        narrow[index] = <uint32_t>values[index]
    pack(narrow, MINI, bits, at)
    return 0


cdef inline int put_differences(Bytes* out, const int64_t* values, int64_t count, bint is_short) except -1 nogil:
    """Encode integers. Those of 32 bits (`is_short`) differ by 32 bits, modulo 2^32, the others modulo 2^64."""
    cdef uint64_t above[BLOCK]
    cdef int64_t steps[BLOCK]
    cdef int64_t start, lowest, step, widths
    cdef uint64_t seen
    cdef int index, size, mini, bits
    put_varint(out, BLOCK)
    put_varint(out, MINIS)
    put_varint(out, count)
    put_zigzag(out, values[0] if count else 0)
    start = 1
    while start < count:
        size = <int>min(<int64_t>BLOCK, count - start)
        for index in range(size):
            step = <int64_t>(<uint64_t>values[start + index] - <uint64_t>values[start + index - 1])
            steps[index] = <int32_t>step if is_short else step
        lowest = steps[0]
        for index in range(1, size):
            lowest = min(lowest, steps[index])
        for index in range(size):
            above[index] = <uint64_t>steps[index] - <uint64_t>lowest    # of 32 bits: both are, and the lowest is less
        for index in range(size, BLOCK):
            above[index] = 0
        put_zigzag(out, lowest)
        extend(out, MINIS)
        widths = out.size - MINIS
        for mini in range(MINIS):
            seen = 0
            for index in range(mini * MINI, (mini + 1) * MINI):
                seen |= above[index]
            bits = bits_for(seen)
            out.data[widths + mini] = <uint8_t>bits
            if bits:
                _put_mini(out, above + mini * MINI, bits)
        start += size
    return 0
