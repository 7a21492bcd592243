# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the entries of a map whose key comes again later in it: the last one counts."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp, memset

from schema_mapping.avro.kernel.growing cimport Growing
from schema_mapping.avro.kernel.reading cimport Reading, Replaced
from schema_mapping.avro.kernel.tables cimport Node, hash_symbol

cdef enum:
    FEW_KEYS = 8        # compared with each other, without a hash table


cdef bint same_keys(const Growing* keys, int64_t one, int64_t two) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>keys.values
    cdef int64_t size = offsets[one + 1] - offsets[one]
    return (
        size == offsets[two + 1] - offsets[two]
        and (size == 0 or memcmp(keys.data + offsets[one], keys.data + offsets[two], size) == 0)
    )


cdef bint replace(Reading* r, int32_t space, int64_t row) noexcept nogil:
    cdef Replaced* replaced = &r.replaced[space]
    cdef int64_t capacity
    cdef int64_t* rows
    r.loose = True
    if replaced.count == replaced.capacity:
        capacity = 2 * replaced.capacity + 64
        rows = <int64_t*>realloc(replaced.rows, capacity * sizeof(int64_t))
        if rows == NULL:
            return False
        replaced.rows, replaced.capacity = rows, capacity
    replaced.rows[replaced.count] = row
    replaced.count += 1
    return True


cdef bint find_replaced(Reading* r, const Node* node, int64_t first) noexcept nogil:
    # Marks entries of a map whose key comes again. Returns False if memory is out.
    cdef const Growing* keys = &r.columns[node.extra]
    cdef const int32_t* offsets = <const int32_t*>keys.values
    cdef int64_t last = r.counts[node.space]
    cdef int64_t size = 16
    cdef int64_t row, at, later
    cdef int32_t* hashed
    if last - first <= FEW_KEYS:
        for row in range(first, last):
            for later in range(row + 1, last):
                if same_keys(keys, row, later):
                    if not replace(r, node.space, row):
                        return False
                    break
        return True
    while size < 2 * (last - first):
        size *= 2
    if r.hashed_size < size:
        hashed = <int32_t*>realloc(r.hashed, size * sizeof(int32_t))
        if hashed == NULL:
            return False
        r.hashed, r.hashed_size = hashed, size
    memset(r.hashed, 0, size * sizeof(int32_t))
    # From the last entry to the first: a key that is there already comes again.
    for row in range(last - 1, first - 1, -1):
        at = hash_symbol(keys.data + offsets[row], offsets[row + 1] - offsets[row], r.seed) & (size - 1)
        while r.hashed[at] and not same_keys(keys, r.hashed[at] - 1, row):
            at = (at + 1) & (size - 1)
        if r.hashed[at]:
            if not replace(r, node.space, row):
                return False
        else:
            r.hashed[at] = <int32_t>(row + 1)
    return True
