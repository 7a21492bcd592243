# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The sum of the hashes of records: MurmurHash3 x64 128 of each one's encoding, added modulo 2^128 (docs/digest.md).

A small record is put together and hashed at once; the long pieces of others are hashed where they lie. There is no
Python object for each record, the loop releases the GIL, and offsets are checked before anything is read through them.
"""

import sys

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from archiver.wire.arrow_input cimport (
    ByteColumn, HeaderColumn, Text, byte_column, header_column, header_count, numbers, text,
)

import pyarrow as pa

if sys.byteorder != "little":
    raise ImportError("the digest hashes numbers of Arrow where they lie: it needs a little-endian machine")

cdef enum:
    _BLOCK = 16
    _HELD = 512     # bytes that are gathered before they are hashed; whole blocks
    _SHORT = 64     # bytes of a short piece

cdef uint64_t _C1 = 0x87C37B91114253D5
cdef uint64_t _C2 = 0x4CF5AD432745937F

cdef struct Hash:           # the state after `length` bytes, of which the last `used` are held and not hashed yet
    uint64_t h1
    uint64_t h2
    uint64_t length
    int64_t used
    uint8_t held[_HELD + _SHORT]

cdef struct Total:          # modulo 2^128
    uint64_t low
    uint64_t high

cdef packed struct Head:    # the numbers of a record, two blocks
    int32_t partition
    int32_t timestamp_type
    int64_t offset
    int64_t timestamp
    int32_t key_length
    int32_t value_length

cdef packed struct Lengths: # of a header
    int32_t key
    int32_t value

cdef struct Records:
    const int32_t* partition
    const int32_t* timestamp_type
    const int64_t* offset
    const int64_t* timestamp
    ByteColumn key
    ByteColumn value
    HeaderColumn headers


cdef inline uint64_t _rotated(uint64_t word, int bits) noexcept nogil:
    return (word << bits) | (word >> (64 - bits))


cdef inline uint64_t _mixed(uint64_t word) noexcept nogil:
    word ^= word >> 33
    word *= <uint64_t>0xFF51AFD7ED558CCD
    word ^= word >> 33
    word *= <uint64_t>0xC4CEB9FE1A85EC53
    return word ^ (word >> 33)


cdef const uint8_t* _blocks(Hash* state, const uint8_t* at, int64_t count) noexcept nogil:
    """Hash whole blocks. Returns where they end."""
    cdef uint64_t words[2]
    cdef uint64_t h1 = state.h1, h2 = state.h2
    cdef int64_t block
    for block in range(count):
        memcpy(words, at, _BLOCK)
        at += _BLOCK
        h1 ^= _rotated(words[0] * _C1, 31) * _C2
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DCE729
        h2 ^= _rotated(words[1] * _C2, 33) * _C1
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x38495AB5
    state.h1, state.h2 = h1, h2
    return at


cdef inline void _feed(Hash* state, const uint8_t* at, int64_t size, const uint8_t* end) noexcept nogil:
    """Hash bytes. Those up to `end` may be read: a short piece is copied as one block, without a branch by its size."""
    if size <= 0:
        return
    state.length += <uint64_t>size
    if size <= _BLOCK and state.used <= _HELD - _BLOCK and end - at >= _BLOCK:
        memcpy(state.held + state.used, at, _BLOCK)
        state.used += size
    else:
        _feed_long(state, at, size)


cdef inline void _feed_fixed(Hash* state, const uint8_t* at, int64_t size) noexcept nogil:
    """Hash numbers of a size that the compiler knows."""
    state.length += <uint64_t>size
    if state.used <= _HELD - size:
        memcpy(state.held + state.used, at, size)
        state.used += size
    else:
        _feed_long(state, at, size)


cdef void _feed_long(Hash* state, const uint8_t* at, int64_t size) noexcept nogil:
    cdef int64_t part
    if size > _HELD - state.used:
        _hash_held(state)
        if state.used:
            part = min(_BLOCK - state.used, size)
            memcpy(state.held + state.used, at, part)
            state.used += part
            at += part
            size -= part
            _hash_held(state)
        part = size // _BLOCK
        at = _blocks(state, at, part)
        size -= part * _BLOCK
    memcpy(state.held + state.used, at, size)
    state.used += size


cdef inline void _hash_held(Hash* state) noexcept nogil:
    """Hash what is held but for the last bytes, which don't fill a block."""
    cdef const uint8_t* at = _blocks(state, state.held, state.used // _BLOCK)
    state.used %= _BLOCK
    if at != state.held:
        memcpy(state.held, at, _BLOCK)


cdef inline void _add_hash(Hash* state, Total* total) noexcept nogil:
    """End the hash and add it to the total. Its first half is the lower one."""
    cdef uint64_t words[2]
    cdef uint64_t h1, h2
    _hash_held(state)
    memset(state.held + state.used, 0, _BLOCK)
    memcpy(words, state.held, _BLOCK)
    h1 = state.h1 ^ _rotated(words[0] * _C1, 31) * _C2 ^ state.length
    h2 = state.h2 ^ _rotated(words[1] * _C2, 33) * _C1 ^ state.length
    h1 += h2
    h2 += h1
    h1 = _mixed(h1)
    h2 = _mixed(h2)
    h1 += h2
    h2 += h1
    total.low += h1
    total.high += h2 + (1 if total.low < h1 else 0)


cdef bint _feed_headers(const Records* r, int64_t row, Hash* state) noexcept nogil:
    cdef int64_t first = r.headers.end[row], each
    cdef int32_t count = header_count(&r.headers, row)
    cdef Lengths lengths
    cdef Text key, value
    if count < 0:
        return False
    _feed_fixed(state, <const uint8_t*>&count, sizeof(count))
    for each in range(first, first + count):
        key, value = text(&r.headers.key, each), text(&r.headers.value, each)
        if key.length < 0 or value.length < -1:
            return False
        lengths.key, lengths.value = key.length, value.length
        _feed_fixed(state, <const uint8_t*>&lengths, sizeof(lengths))
        _feed(state, key.at, key.length, r.headers.key.data + r.headers.key.size)
        _feed(state, value.at, value.length, r.headers.value.data + r.headers.value.size)
    return True


cdef inline uint8_t* _put(
    uint8_t* to, const uint8_t* limit, const Text* piece, const ByteColumn* column
) noexcept nogil:
    """Copy a piece: a short one with what follows it, so that its size is no branch. NULL beyond the limit."""
    cdef int64_t readable
    if piece.length <= 0:
        return to
    readable = column.data + column.size - piece.at
    if piece.length > limit - to:
        return NULL
    if piece.length <= _BLOCK and readable >= _BLOCK:
        memcpy(to, piece.at, _BLOCK)
    elif piece.length <= _SHORT and readable >= _SHORT:
        memcpy(to, piece.at, _SHORT)
    else:
        memcpy(to, piece.at, piece.length)
    return to + piece.length


cdef inline bint _gather_record(const Records* r, int64_t row, Hash* state) noexcept nogil:
    """Hold a small record whole. False if it is larger, or wrong."""
    cdef Text key = text(&r.key, row), value = text(&r.value, row)
    cdef int64_t first = r.headers.end[row], each
    cdef int32_t count = header_count(&r.headers, row)
    cdef uint8_t* to = state.held
    cdef const uint8_t* limit = to + _HELD
    cdef Head head
    cdef Lengths lengths
    if key.length < -1 or value.length < -1 or count < 0:
        return False
    head.partition, head.timestamp_type = r.partition[row], r.timestamp_type[row]
    head.offset, head.timestamp = r.offset[row], r.timestamp[row]
    head.key_length, head.value_length = key.length, value.length
    memcpy(to, &head, sizeof(head))
    to = _put(to + sizeof(head), limit, &key, &r.key)
    if to == NULL:
        return False
    to = _put(to, limit, &value, &r.value)
    if to == NULL or limit - to < <int64_t>sizeof(count):
        return False
    memcpy(to, &count, sizeof(count))
    to += sizeof(count)
    for each in range(first, first + count):
        key, value = text(&r.headers.key, each), text(&r.headers.value, each)
        if key.length < 0 or value.length < -1 or limit - to < <int64_t>sizeof(lengths):
            return False
        lengths.key, lengths.value = key.length, value.length
        memcpy(to, &lengths, sizeof(lengths))
        to = _put(to + sizeof(lengths), limit, &key, &r.headers.key)
        if to == NULL:
            return False
        to = _put(to, limit, &value, &r.headers.value)
        if to == NULL:
            return False
    state.used = to - state.held
    state.length = <uint64_t>state.used
    return True


cdef bint _add_record(const Records* r, int64_t row, Total* total) noexcept nogil:
    cdef Text key, value
    cdef Hash state
    cdef Head head
    state.h1 = state.h2 = 0
    if _gather_record(r, row, &state):
        _add_hash(&state, total)
        return True
    key, value = text(&r.key, row), text(&r.value, row)
    if key.length < -1 or value.length < -1:
        return False
    head.partition, head.timestamp_type = r.partition[row], r.timestamp_type[row]
    head.offset, head.timestamp = r.offset[row], r.timestamp[row]
    head.key_length, head.value_length = key.length, value.length
    state.length = 0
    state.used = 0
    _feed_fixed(&state, <const uint8_t*>&head, sizeof(head))
    _feed(&state, key.at, key.length, r.key.data + r.key.size)
    _feed(&state, value.at, value.length, r.value.data + r.value.size)
    if not _feed_headers(r, row, &state):
        return False
    _add_hash(&state, total)
    return True


cdef bint _add_records(const Records* r, int64_t rows, Total* total) noexcept nogil:
    cdef int64_t row
    for row in range(rows):
        if not _add_record(r, row, total):
            return False
    return True


def sum_of_hashes(partition, offset, timestamp_type, timestamp, key, value, headers):
    """The sum of the hashes of records. Each row of the columns is one record.

    The columns are Arrow arrays: int32, int64, int32, int64, binary, binary, and lists of structs of two binaries, key
    and value. Raises ValueError if a column has another type or length, or nulls where a record has none.
    """
    cdef Records r
    cdef Total total
    cdef int64_t rows = len(offset)
    cdef bint is_whole
    r.partition = <const int32_t*>numbers(partition, rows, pa.int32(), 4)
    r.timestamp_type = <const int32_t*>numbers(timestamp_type, rows, pa.int32(), 4)
    r.offset = <const int64_t*>numbers(offset, rows, pa.int64(), 8)
    r.timestamp = <const int64_t*>numbers(timestamp, rows, pa.int64(), 8)
    r.key, r.value, r.headers = byte_column(key, rows), byte_column(value, rows), header_column(headers, rows)
    total.low = total.high = 0
    with nogil:
        is_whole = _add_records(&r, rows, &total)
    if not is_whole:
        raise ValueError("a column's offsets point outside its bytes, or a header has no key")
    return (<object>total.high << 64) | total.low


def murmur3_x64_128(const uint8_t[::1] data):
    """The hash of bytes, with seed 0, as a number. Of its 16 bytes, the first 8 are the lower half, little-endian."""
    cdef Hash state
    cdef Total total
    state.h1 = state.h2 = state.length = 0
    state.used = 0
    total.low = total.high = 0
    with nogil:
        if data.shape[0]:
            _feed(&state, &data[0], data.shape[0], &data[0] + data.shape[0])
        _add_hash(&state, &total)
    return (<object>total.high << 64) | total.low
