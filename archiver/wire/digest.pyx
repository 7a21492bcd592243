# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The sum of the hashes of records: MurmurHash3 x64 128 of each one's encoding, added modulo 2^128 (docs/digest.md).

Nothing is gathered first: a record's numbers, key, value and headers stream through the hash where they lie. No Python
object is made per record, the loop holds no GIL, and offsets are checked before anything is read through them.
"""

import sys

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

import pyarrow as pa

if sys.byteorder != "little":
    raise ImportError("the digest hashes numbers of Arrow where they lie: it needs a little-endian machine")

cdef enum:
    _BLOCK = 16

cdef uint64_t _C1 = 0x87C37B91114253D5
cdef uint64_t _C2 = 0x4CF5AD432745937F

cdef struct Hash:           # the state after `length` bytes, of which the last `used` wait for their block to fill
    uint64_t h1
    uint64_t h2
    uint64_t length
    int64_t used
    uint8_t tail[_BLOCK]

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

cdef struct Bytes:          # an Arrow column of byte strings
    const int32_t* end
    const uint8_t* data
    int64_t size
    const uint8_t* valid
    int64_t first_bit

cdef struct Text:           # one of its values; a negative length is null, one below -1 is none that Arrow has
    const uint8_t* at
    int32_t length

cdef struct Records:
    const int32_t* partition
    const int32_t* timestamp_type
    const int64_t* offset
    const int64_t* timestamp
    const int32_t* headers_end
    int64_t headers
    Bytes key
    Bytes value
    Bytes header_key
    Bytes header_value


cdef inline uint64_t _rotated(uint64_t word, int bits) noexcept nogil:
    return (word << bits) | (word >> (64 - bits))


cdef inline uint64_t _mixed(uint64_t word) noexcept nogil:
    word ^= word >> 33
    word *= <uint64_t>0xFF51AFD7ED558CCD
    word ^= word >> 33
    word *= <uint64_t>0xC4CEB9FE1A85EC53
    return word ^ (word >> 33)


cdef const uint8_t* _blocks(Hash* state, const uint8_t* at, int64_t count) noexcept nogil:
    """Hash whole blocks; gives where they end."""
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


cdef void _feed(Hash* state, const uint8_t* at, int64_t size) noexcept nogil:
    cdef int64_t part
    if size <= 0:
        return
    state.length += <uint64_t>size
    if state.used:
        part = min(_BLOCK - state.used, size)
        memcpy(state.tail + state.used, at, part)
        state.used += part
        if state.used < _BLOCK:
            return
        _blocks(state, state.tail, 1)
        at += part
        size -= part
    at = _blocks(state, at, size // _BLOCK)
    state.used = size % _BLOCK
    memcpy(state.tail, at, state.used)


cdef inline void _add_hash(Hash* state, Total* total) noexcept nogil:
    """End the hash and add it: its first half is the lower one."""
    cdef uint64_t words[2]
    cdef uint64_t h1, h2
    memset(state.tail + state.used, 0, _BLOCK - state.used)
    memcpy(words, state.tail, _BLOCK)
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


cdef inline Text _text(const Bytes* column, int64_t row) noexcept nogil:
    cdef Text found
    cdef int64_t bit = column.first_bit + row, start = column.end[row], end = column.end[row + 1]
    found.at, found.length = NULL, -1
    if column.valid != NULL and not (column.valid[bit >> 3] >> (bit & 7)) & 1:
        return found
    if start < 0 or end < start or end > column.size:
        found.length = -2
        return found
    found.at, found.length = column.data + start, <int32_t>(end - start)
    return found


cdef bint _feed_headers(const Records* r, int64_t row, Hash* state) noexcept nogil:
    cdef int64_t first = r.headers_end[row], end = r.headers_end[row + 1], each
    cdef int32_t count
    cdef Lengths lengths
    cdef Text key, value
    if first < 0 or end < first or end > r.headers:
        return False
    count = <int32_t>(end - first)
    _feed(state, <const uint8_t*>&count, sizeof(count))
    for each in range(first, end):
        key, value = _text(&r.header_key, each), _text(&r.header_value, each)
        if key.length < 0 or value.length < -1:
            return False
        lengths.key, lengths.value = key.length, value.length
        _feed(state, <const uint8_t*>&lengths, sizeof(lengths))
        _feed(state, key.at, key.length)
        _feed(state, value.at, value.length)
    return True


cdef bint _add_record(const Records* r, int64_t row, Total* total) noexcept nogil:
    cdef Text key = _text(&r.key, row), value = _text(&r.value, row)
    cdef Hash state
    cdef Head head
    if key.length < -1 or value.length < -1:
        return False
    head.partition, head.timestamp_type = r.partition[row], r.timestamp_type[row]
    head.offset, head.timestamp = r.offset[row], r.timestamp[row]
    head.key_length, head.value_length = key.length, value.length
    state.h1 = state.h2 = state.length = 0
    state.used = 0
    _feed(&state, <const uint8_t*>&head, sizeof(head))
    _feed(&state, key.at, key.length)
    _feed(&state, value.at, value.length)
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


cdef uint8_t* _address(object buffer) except? NULL:
    return NULL if buffer is None else <uint8_t*><uint64_t>buffer.address


cdef uint8_t* _numbers(object column, int64_t rows, object kind, int width) except? NULL:
    """Where the numbers of a column without nulls lie."""
    if column.type != kind or column.null_count or len(column) != rows:
        raise ValueError(f"expected {rows} values of {kind} and no null, got {len(column)} of {column.type}")
    return _address(column.buffers()[1]) + width * <int64_t>column.offset if rows else NULL


cdef Bytes _strings(object column, int64_t rows) except *:
    cdef Bytes found
    if column.type != pa.binary() or len(column) != rows:
        raise ValueError(f"expected {rows} values of binary, got {len(column)} of {column.type}")
    valid, end, data = column.buffers()
    found.first_bit = column.offset
    found.end = <const int32_t*>_address(end) + (found.first_bit if rows else 0)
    found.data = _address(data)
    found.size = 0 if data is None else data.size
    found.valid = _address(valid)
    return found


def sum_of_hashes(partition, offset, timestamp_type, timestamp, key, value, headers):
    """The sum of the hashes of records, one row of each column a record.

    Arrow arrays: int32, int64, int32, int64 and binary, and a list of structs of two binaries, key and value. Raises
    ValueError where a column isn't so, is of another length, or has nulls that no record has.
    """
    cdef Records r
    cdef Total total
    cdef int64_t rows = len(offset)
    cdef bint is_whole
    if not pa.types.is_list(headers.type) or headers.null_count or len(headers) != rows:
        raise ValueError(f"expected {rows} lists of headers and no null, got {len(headers)} of {headers.type}")
    entries, starts = headers.values, headers.offsets
    if not pa.types.is_struct(entries.type) or entries.type.num_fields != 2 or entries.null_count:
        raise ValueError(f"expected headers of key and value and none of them null, got {entries.type}")
    names, values = entries.field(0), entries.field(1)
    r.partition = <const int32_t*>_numbers(partition, rows, pa.int32(), 4)
    r.timestamp_type = <const int32_t*>_numbers(timestamp_type, rows, pa.int32(), 4)
    r.offset = <const int64_t*>_numbers(offset, rows, pa.int64(), 8)
    r.timestamp = <const int64_t*>_numbers(timestamp, rows, pa.int64(), 8)
    r.headers_end = <const int32_t*>_numbers(starts, rows + 1, pa.int32(), 4)
    r.headers = len(entries)
    r.key, r.value = _strings(key, rows), _strings(value, rows)
    r.header_key, r.header_value = _strings(names, r.headers), _strings(values, r.headers)
    total.low = total.high = 0
    with nogil:
        is_whole = _add_records(&r, rows, &total)
    if not is_whole:
        raise ValueError("a column's offsets point outside its bytes, or a header has no key")
    return (<object>total.high << 64) | total.low


def murmur3_x64_128(const uint8_t[::1] data):
    """The hash itself, seed 0, as a number: the first half of its 16 bytes is the lower one, each half little-endian."""
    cdef Hash state
    cdef Total total
    memset(&state, 0, sizeof(state))
    total.low = total.high = 0
    with nogil:
        if data.shape[0]:
            _feed(&state, &data[0], data.shape[0])
        _add_hash(&state, &total)
    return (<object>total.high << 64) | total.low
