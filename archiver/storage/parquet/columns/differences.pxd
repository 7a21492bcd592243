# cython: language_level=3
"""Integers as differences (Encodings.md, DELTA_BINARY_PACKED = 5): blocks of 128 or 256, with four widths each."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put_varint, put_zigzag
from archiver.storage.parquet.columns.runs cimport bits_for, pack

cdef enum:
    MINIS = 4               # parts of a block, each with a width of its own
    MOST = 256              # values in a block
    MOST_IN_MINI = 64
    SHORT_BLOCK = 128       # of integers of 32 bits, as Arrow has it


cdef inline void _pack_wide(const uint64_t* values, int count, int bits, uint8_t* at) noexcept nogil:
    """Pack values of more than 32 bits. It may write 8 bytes beyond the last one."""
    cdef uint64_t gathered = 0, value
    cdef int held = 0, index
    for index in range(count):
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


cdef inline int _put_mini(Bytes* out, const uint64_t* values, int count, int bits) except -1 nogil:
    cdef uint32_t narrow[MOST_IN_MINI]
    cdef uint8_t* at = extend(out, count // 8 * bits)
    cdef int index
    if bits > 32:
        _pack_wide(values, count, bits, at)
        return 0
    for index in range(count):
        narrow[index] = <uint32_t>values[index]
    pack(narrow, count, bits, at)
    return 0


cdef inline int _put_block(Bytes* out, const int64_t* values, int size, int block, bint is_short) except -1 nogil:
    """So many values, which come after `values[-1]`."""
    cdef uint64_t above[MOST]
    cdef int64_t steps[MOST]
    cdef int64_t lowest, step, widths
    cdef uint64_t seen
    cdef int index, start, bits, mini = block // MINIS
    for index in range(size):
        step = <int64_t>(<uint64_t>values[index] - <uint64_t>values[index - 1])
        steps[index] = <int32_t>step if is_short else step
    lowest = steps[0]
    for index in range(1, size):
        lowest = min(lowest, steps[index])
    for index in range(size):
        above[index] = <uint64_t>steps[index] - <uint64_t>lowest
    for index in range(size, block):
        above[index] = 0
    put_zigzag(out, lowest)
    extend(out, MINIS)
    widths = out.size - MINIS
    for start in range(MINIS):
        seen = 0
        for index in range(start * mini, (start + 1) * mini):
            seen |= above[index]
        bits = bits_for(seen)
        out.data[widths + start] = <uint8_t>bits
        if bits:
            _put_mini(out, above + start * mini, mini, bits)
    return 0


cdef inline int put_differences(Bytes* out, const int64_t* values, int64_t count, bint is_short) except -1 nogil:
    """Encode integers. Those of 32 bits (`is_short`) differ by 32 bits, modulo 2^32, the others modulo 2^64."""
    cdef int block = SHORT_BLOCK if is_short else MOST
    cdef int64_t start = 1
    put_varint(out, block)
    put_varint(out, MINIS)
    put_varint(out, count)
    put_zigzag(out, values[0] if count else 0)
    while start < count:
        _put_block(out, values + start, <int>min(<int64_t>block, count - start), block, is_short)
        start += block
    return 0
