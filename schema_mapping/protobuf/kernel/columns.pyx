# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The second pass of decoding: appends the slots of one chunk to growing Arrow buffers, one column after the other."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from schema_mapping.protobuf.kernel.scratch cimport Piece, Rows, SPILL_BIT, Scratch
from schema_mapping.protobuf.kernel.tables cimport (
    OUT_32, OUT_64, OUT_BITS, OUT_BOOL, OUT_COUNTS, OUT_DECIMAL, OUT_ENUM, OUT_UNKNOWN, Output,
)

cdef enum:
    SLACK = 16
    SPILL_PLACE = 32 + SPILL_BIT


cdef void look_over(const Rows* rows, int head, Seen* seen) noexcept nogil:
    cdef const uint64_t* word
    cdef uint64_t some, every
    cdef int64_t i
    cdef int at
    for at in range(head):
        word = rows.block + at
        some = 0
        every = <uint64_t>-1
        for i in range(rows.count):
            some |= word[0]
            every &= word[0]
            word += rows.stride
        seen.some[at] = some
        seen.every[at] = every


cdef Gathered gather(
    Scratch* s, const Output* output, Column* column, const Grower* grower, const Seen* seen
) noexcept nogil:
    # Appends the chunk's rows of one output column. `seen` belongs to the column's row space.
    cdef Rows* rows = &s.spaces[output.space]
    cdef const uint64_t* slots
    if rows.count == 0:
        return GATHERED
    if output.gate >= 0 and not seen.some[output.gate >> 6] >> (output.gate & 63) & 1 and output.kind != OUT_ENUM:
        return append_nothing(output.kind, grower, column, rows.count)
    slots = rows.block + output.slot
    if output.kind == OUT_BITS:
        if column.nulls == 0 and seen.every[output.slot >> 6] >> (output.slot & 63) & 1:
            # No validity bits are stored until the first null.
            column.rows += rows.count
            return GATHERED
        slots = rows.block + (output.slot >> 6)
        return gather_validity(grower, column, slots, rows.stride, rows.count, output.slot & 63)
    elif output.kind == OUT_32:
        return gather_32(grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_64:
        return gather_64(grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_BOOL:
        return gather_bools(grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_COUNTS:
        return gather_counts(grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_UNKNOWN:
        return gather_unknown(s, grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_DECIMAL:
        return gather_decimals(grower, column, slots, rows.stride, rows.count)
    elif output.kind == OUT_ENUM:
        return gather_bytes(s, grower, column, slots, rows.stride, rows.count, s.enum_names[output.extra])
    return gather_bytes(s, grower, column, slots, rows.stride, rows.count, 0)


cdef inline bint reserve(const Grower* grower, Memory* memory, int64_t size) noexcept nogil:
    return size <= memory.capacity or grower.grow(grower.owner, memory, size)


cdef inline bint reserve_values(const Grower* grower, Column* column, int64_t count, int width) noexcept nogil:
    # Makes room for the values or offsets of `count` more rows, and one more. Earlier rows without a buffer get zeros.
    cdef bint first = column.values.data == NULL
    if not reserve(grower, &column.values, (column.rows + count + 1) * width):
        return False
    if first:
        memset(column.values.data, 0, column.rows * width)
    return True


cdef Gathered append_nothing(int kind, const Grower* grower, Column* column, int64_t count) noexcept nogil:
    # Appends empty rows: zeros, empty bytes, or nulls if the column is bits. A column without a buffer stays so.
    cdef int32_t* offsets
    cdef int64_t i
    cdef int width
    if kind == OUT_BITS:
        if column.nulls != column.rows or column.bits.data != NULL:
            if not open_bits(grower, column, count):
                return GATHER_NO_MEMORY
        column.nulls += count
    elif kind == OUT_BOOL:
        if column.bits.data != NULL and not reserve_bits(grower, column, count):
            return GATHER_NO_MEMORY
    elif column.values.data == NULL:
        column.nulls += count if kind == OUT_UNKNOWN else 0
    elif kind == OUT_32 or kind == OUT_64 or kind == OUT_DECIMAL:
        width = 4 if kind == OUT_32 else 8 if kind == OUT_64 else 16
        if not reserve_values(grower, column, count, width):
            return GATHER_NO_MEMORY
        memset(column.values.data + column.rows * width, 0, count * width)
    else:
        if not reserve_values(grower, column, count, 4):
            return GATHER_NO_MEMORY
        if kind == OUT_UNKNOWN:
            if not reserve_bits(grower, column, count):
                return GATHER_NO_MEMORY
            column.nulls += count
        offsets = <int32_t*>column.values.data + column.rows
        for i in range(count + 1):
            offsets[i] = <int32_t>column.data_size
    column.rows += count
    return GATHERED


cdef Gathered gather_32(
    const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    cdef uint32_t* out
    cdef int64_t i
    if not reserve_values(grower, column, count, 4):
        return GATHER_NO_MEMORY
    out = <uint32_t*>column.values.data + column.rows
    if stride == 1:
        for i in range(count):
            out[i] = <uint32_t>slots[i]
    else:
        for i in range(count):
            out[i] = <uint32_t>slots[i * stride]
    column.rows += count
    return GATHERED


cdef Gathered gather_64(
    const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    cdef uint64_t* out
    cdef int64_t i
    if not reserve_values(grower, column, count, 8):
        return GATHER_NO_MEMORY
    out = <uint64_t*>column.values.data + column.rows
    if stride == 1:
        memcpy(out, slots, count * 8)
    else:
        for i in range(count):
            out[i] = slots[i * stride]
    column.rows += count
    return GATHERED


cdef Gathered gather_decimals(
    const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    cdef uint64_t* out
    cdef int64_t i
    if not reserve_values(grower, column, count, 16):
        return GATHER_NO_MEMORY
    out = <uint64_t*>column.values.data + 2 * column.rows
    for i in range(count):
        out[2 * i] = slots[i * stride]
        out[2 * i + 1] = 0
    column.rows += count
    return GATHERED


cdef Gathered gather_counts(
    const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    # `data_size` is the last offset.
    cdef int32_t* out
    cdef int64_t i
    cdef int64_t total = column.data_size
    if not reserve_values(grower, column, count, 4):
        return GATHER_NO_MEMORY
    out = <int32_t*>column.values.data + column.rows
    for i in range(count):
        out[i] = <int32_t>total
        total += slots[i * stride]
    if total > INT32_MAX:
        return GATHER_TOO_LARGE
    out[count] = <int32_t>total
    column.data_size = total
    column.rows += count
    return GATHERED


cdef bint reserve_bits(const Grower* grower, Column* column, int64_t count) noexcept nogil:
    # New bytes are zero, so only set bits have to be written.
    cdef int64_t before = column.bits.capacity
    if not reserve(grower, &column.bits, (column.rows + count + 7) >> 3):
        return False
    memset(column.bits.data + before, 0, column.bits.capacity - before)
    return True


cdef void set_bits(uint8_t* bits, int64_t start, int64_t count) noexcept nogil:
    cdef int64_t i = start
    cdef int64_t end = start + count
    while i < end and i & 7:
        bits[i >> 3] |= 1 << (i & 7)
        i += 1
    if end - i >= 8:
        memset(bits + (i >> 3), 0xFF, (end - i) >> 3)
        i += (end - i) & ~<int64_t>7
    while i < end:
        bits[i >> 3] |= 1 << (i & 7)
        i += 1


cdef inline int64_t append_bits(
    uint8_t* bits, int64_t at, const uint64_t* words, int64_t stride, int64_t count, int shift
) noexcept nogil:
    # Copies one bit of each row, whole bytes where possible. Returns how many were set.
    cdef int64_t end = at + count
    cdef int64_t ones = 0
    cdef uint64_t bit, byte
    cdef int i
    while at < end:
        if at & 7 or end - at < 8:
            bit = words[0] >> shift & 1
            bits[at >> 3] |= <uint8_t>(bit << (at & 7))
            ones += bit
            words += stride
            at += 1
            continue
        byte = 0
        for i in range(8):
            bit = words[i * stride] >> shift & 1
            byte |= bit << i
            ones += bit
        bits[at >> 3] = <uint8_t>byte
        words += 8 * stride
        at += 8
    return ones


cdef Gathered gather_bools(
    const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    if not reserve_bits(grower, column, count):
        return GATHER_NO_MEMORY
    append_bits(column.bits.data, column.rows, slots, stride, count, 0)
    column.rows += count
    return GATHERED


cdef bint open_bits(const Grower* grower, Column* column, int64_t count) noexcept nogil:
    # Makes room for bits. Writes those of earlier rows, which were all set or all clear.
    cdef bint first = column.bits.data == NULL
    if not reserve_bits(grower, column, count):
        return False
    if first and column.nulls == 0:
        set_bits(column.bits.data, 0, column.rows)
    return True


cdef Gathered gather_validity(
    const Grower* grower, Column* column, const uint64_t* words, int64_t stride, int64_t count, int shift
) noexcept nogil:
    if not open_bits(grower, column, count):
        return GATHER_NO_MEMORY
    column.nulls += count - append_bits(column.bits.data, column.rows, words, stride, count, shift)
    column.rows += count
    return GATHERED


cdef inline const uint8_t* locate(Scratch* s, uint32_t start) noexcept nogil:
    if start >> SPILL_BIT:
        return s.spill + (start & 0x7FFFFFFF)
    return s.base + start


cdef inline void copy_bytes(uint8_t* out, const uint8_t* data, uint32_t length, const uint8_t* limit) noexcept nogil:
    # The target has room for SLACK bytes more than the value. Bytes may be read up to `limit`.
    if length <= SLACK and limit - data >= SLACK:
        memcpy(out, data, SLACK)
    else:
        memcpy(out, data, length)


cdef Gathered gather_bytes(
    Scratch* s, const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count,
    uint64_t absent
) noexcept nogil:
    # An empty slot gets the value of `absent`.
    cdef int32_t* offsets
    cdef int64_t total = column.data_size
    cdef int64_t i
    cdef uint64_t slot
    cdef uint8_t* out
    if not reserve_values(grower, column, count, 4):
        return GATHER_NO_MEMORY
    offsets = <int32_t*>column.values.data + column.rows
    for i in range(count):
        offsets[i] = <int32_t>total
        slot = slots[i * stride]
        total += <uint32_t>(slot if slot else absent)
    if total > INT32_MAX:
        return GATHER_TOO_LARGE
    offsets[count] = <int32_t>total
    if not reserve(grower, &column.data, total + SLACK):
        return GATHER_NO_MEMORY
    out = column.data.data + column.data_size
    for i in range(count):
        slot = slots[i * stride]
        if slot == 0:
            slot = absent
        if slot >> SPILL_PLACE:
            copy_bytes(out, s.spill + (<uint32_t>(slot >> 32) & 0x7FFFFFFF), <uint32_t>slot, s.spill + s.spill_capacity)
        else:
            copy_bytes(out, s.base + <uint32_t>(slot >> 32), <uint32_t>slot, s.limit)
        out += <uint32_t>slot
    column.data_size = total
    column.rows += count
    return GATHERED


cdef Gathered gather_unknown(
    Scratch* s, const Grower* grower, Column* column, const uint64_t* slots, int64_t stride, int64_t count
) noexcept nogil:
    # Nothing is stored until the first unknown byte; earlier rows then get zero offsets and bits.
    cdef int32_t* offsets
    cdef int64_t total = column.data_size
    cdef int64_t rows = column.rows
    cdef int64_t i
    cdef uint8_t* out
    cdef bint first = column.values.data == NULL
    if first and s.piece_count == 0:
        column.rows += count
        column.nulls += count
        return GATHERED
    if not reserve_values(grower, column, count, 4) or not reserve_bits(grower, column, count):
        return GATHER_NO_MEMORY
    offsets = <int32_t*>column.values.data + rows
    for i in range(count):
        offsets[i] = <int32_t>total
        total += unknown_size(s, slots[i * stride])
    if total > INT32_MAX:
        return GATHER_TOO_LARGE
    offsets[count] = <int32_t>total
    if not reserve(grower, &column.data, total):
        return GATHER_NO_MEMORY
    out = column.data.data + column.data_size
    for i in range(count):
        if slots[i * stride]:
            column.bits.data[(rows + i) >> 3] |= 1 << ((rows + i) & 7)
            out = copy_unknown(s, out, slots[i * stride])
        else:
            column.nulls += 1
    column.data_size = total
    column.rows += count
    return GATHERED


cdef int64_t unknown_size(Scratch* s, uint64_t slot) noexcept nogil:
    cdef uint64_t at = slot >> 32
    cdef int64_t size = 0
    while at:
        size += s.pieces[at - 1].length
        at = s.pieces[at - 1].next
    return size


cdef uint8_t* copy_unknown(Scratch* s, uint8_t* out, uint64_t slot) noexcept nogil:
    cdef uint64_t at = slot >> 32
    cdef const Piece* piece
    while at:
        piece = &s.pieces[at - 1]
        memcpy(out, locate(s, piece.start), piece.length)
        out += piece.length
        at = piece.next
    return out
