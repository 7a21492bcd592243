# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds keys that come twice in a map: the last entry stays, the others are listed for removal, the value is kept raw.

Keys are hashed with a random seed of the process, so that nobody can send a million keys that collide.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.kernel.octets cimport load32
from schema_mapping.protobuf.kernel.scratch cimport NO_MEMORY, Rows, SPILL_BIT, Scratch
from schema_mapping.protobuf.kernel.tables cimport MapKeys, Space

cdef enum:
    FEW = 16

# The keys of one map: one slot every `stride` words.
cdef struct Keys:
    const uint64_t* slots
    int64_t stride
    int64_t count
    bint as_bytes


cdef bint mark_duplicates(
    Scratch* s, const MapKeys* keys, KeyTable* table, int64_t first_row, RowList* dead, uint8_t* root_flags
) noexcept nogil:
    # Does so for each map of this field in the chunk. `first_row` is the number of the chunk's first entry in the whole
    # column. The bytes of `root_flags` are set to 1 for values that have a key twice.
    cdef const Space* layout = &s.layout[keys.space]
    cdef const Rows* parents = &s.spaces[layout.parent]
    cdef const Rows* entries = &s.spaces[keys.space]
    cdef Keys those
    cdef uint32_t* roots = NULL
    cdef int64_t at = 0
    cdef int64_t before
    cdef int64_t i, count
    cdef bint fine = True
    those.as_bytes = keys.as_bytes
    those.stride = entries.stride
    for i in range(parents.count):
        count = <int64_t>parents.block[i * parents.stride + layout.count_slot]
        if count > 1:
            before = dead.count
            those.slots = entries.block + at * entries.stride + keys.slot
            those.count = count
            fine = compare(s, &those, table, first_row + at, dead)
            if fine and dead.count > before:
                if roots == NULL:
                    roots = root_rows(s, layout.parent)
                    fine = roots != NULL
                if fine:
                    root_flags[roots[i]] = 1
            if not fine:
                break
        at += count
    free(roots)
    if not fine:
        s.failure = NO_MEMORY
    return fine


cdef bint mark_equal_keys(
    Scratch* s, const uint64_t* slots, int64_t stride, int64_t count, KeyTable* table, RowList* dead
) noexcept nogil:
    # Lists the numbers of keys, all strings, that come again later. Returns False if memory is out.
    cdef Keys those
    those.as_bytes = True
    those.slots = slots
    those.stride = stride
    those.count = count
    return compare(s, &those, table, 0, dead)


cdef inline bint compare(
    Scratch* s, const Keys* keys, KeyTable* table, int64_t first_row, RowList* dead
) noexcept nogil:
    if keys.count <= FEW:
        return compare_all(s, keys, first_row, dead)
    return compare_hashed(s, keys, table, first_row, dead)


cdef inline const uint8_t* key_bytes(Scratch* s, uint64_t slot) noexcept nogil:
    cdef uint32_t start = <uint32_t>(slot >> 32)
    return s.spill + (start & 0x7FFFFFFF) if start >> SPILL_BIT else s.base + start


cdef inline bint same_key(Scratch* s, bint as_bytes, uint64_t one, uint64_t other) noexcept nogil:
    if not as_bytes:
        return one == other
    return <uint32_t>one == <uint32_t>other and not memcmp(key_bytes(s, one), key_bytes(s, other), <uint32_t>one)


cdef bint compare_all(Scratch* s, const Keys* keys, int64_t first_row, RowList* dead) noexcept nogil:
    cdef const uint64_t* slots = keys.slots
    cdef int64_t stride = keys.stride
    cdef int64_t count = keys.count
    cdef uint64_t digests[FEW]
    cdef uint64_t same = 0
    cdef int64_t i, j
    for i in range(count):
        digests[i] = digest(s, keys.as_bytes, slots[i * stride])
    for i in range(count - 1):
        for j in range(i + 1, count):
            same |= digests[i] == digests[j]
    if not same:
        return True
    for i in range(count - 1):
        for j in range(i + 1, count):
            if same_key(s, keys.as_bytes, slots[i * stride], slots[j * stride]):
                if not add_row(dead, first_row + i):
                    return False
                break
    return True


cdef inline uint64_t digest(Scratch* s, bint as_bytes, uint64_t slot) noexcept nogil:
    # A digest that is equal for equal keys, and mostly different for others.
    cdef const uint8_t* data
    cdef uint64_t head = 0
    cdef uint64_t tail = 0
    cdef uint32_t length = <uint32_t>slot
    if not as_bytes:
        return slot
    data = key_bytes(s, slot)
    if length >= 8:
        memcpy(&head, data, 8)
        memcpy(&tail, data + length - 8, 8)
        return head ^ (tail * <uint64_t>0x9E3779B97F4A7C15) ^ length
    if length >= 4:
        return <uint64_t>load32(data) << 32 ^ load32(data + length - 4) ^ <uint64_t>length << 24
    if length:
        return data[0] | <uint64_t>data[length >> 1] << 8 | <uint64_t>data[length - 1] << 16 | <uint64_t>length << 24
    return 0


cdef bint compare_hashed(
    Scratch* s, const Keys* keys, KeyTable* table, int64_t first_row, RowList* dead
) noexcept nogil:
    cdef const uint64_t* slots = keys.slots
    cdef int64_t stride = keys.stride
    cdef int64_t count = keys.count
    cdef int64_t size = 32
    cdef int64_t i, place, held
    cdef uint64_t slot
    while size < 2 * count:
        size *= 2
    if not clear_table(table, size):
        return False
    for i in range(count):
        slot = slots[i * stride]
        place = <int64_t>hash_key(s, keys.as_bytes, slot, table.seed) & (size - 1)
        while True:
            held = table.places[place]
            if held == 0:
                break
            if same_key(s, keys.as_bytes, slots[(held - 1) * stride], slot):
                if not add_row(dead, first_row + held - 1):
                    return False
                break
            place = (place + 1) & (size - 1)
        table.places[place] = <uint32_t>(i + 1)
    return True


cdef bint clear_table(KeyTable* table, int64_t size) noexcept nogil:
    cdef void* grown
    if size > table.capacity:
        grown = realloc(table.places, size * sizeof(uint32_t))
        if grown == NULL:
            return False
        table.places = <uint32_t*>grown
        table.capacity = size
    memset(table.places, 0, size * sizeof(uint32_t))
    return True


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef uint64_t hash_key(Scratch* s, bint as_bytes, uint64_t slot, uint64_t seed) noexcept nogil:
    cdef const uint8_t* data
    cdef uint64_t word
    cdef uint64_t result
    cdef uint32_t left
    if not as_bytes:
        return mixed(slot ^ seed)
    data = key_bytes(s, slot)
    left = <uint32_t>slot
    result = mixed(left ^ seed)
    while left >= 8:
        memcpy(&word, data, 8)
        result = mixed(result ^ word) + seed
        data += 8
        left -= 8
    word = 0
    memcpy(&word, data, left)
    return mixed(result ^ word)


cdef bint add_row(RowList* rows, int64_t row) noexcept nogil:
    cdef int64_t capacity
    cdef void* grown
    if rows.count == rows.capacity:
        capacity = rows.capacity * 2 + 16
        grown = realloc(rows.rows, capacity * sizeof(int64_t))
        if grown == NULL:
            return False
        rows.rows = <int64_t*>grown
        rows.capacity = capacity
    rows.rows[rows.count] = row
    rows.count += 1
    return True


cdef uint32_t* root_rows(Scratch* s, int space) noexcept nogil:
    # For each row of a space, the row of the root that it belongs to. The caller frees it; NULL if memory is out.
    cdef const Space* layout = &s.layout[space]
    cdef const Rows* rows = &s.spaces[space]
    cdef uint32_t* result = <uint32_t*>calloc(rows.count + 1, sizeof(uint32_t))
    cdef uint32_t* above
    cdef const Rows* parents
    cdef int64_t i, j, count
    cdef int64_t at = 0
    if result == NULL:
        return NULL
    if layout.parent < 0:
        for i in range(rows.count):
            result[i] = <uint32_t>i
        return result
    above = root_rows(s, layout.parent)
    if above == NULL:
        free(result)
        return NULL
    parents = &s.spaces[layout.parent]
    for i in range(parents.count):
        count = <int64_t>parents.block[i * parents.stride + layout.count_slot]
        for j in range(count):
            result[at + j] = above[i]
        at += count
    free(above)
    return result
