# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the entries of a map whose key comes again later in it: the last one counts."""

import os

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memset

from schema_mapping.kernel.growing cimport Growing
from schema_mapping.kernel.octets cimport hash_text

cdef enum:
    FEW_KEYS = 8        # compared with each other, without a hash table

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")


cdef bint same_keys(const Growing* keys, int64_t one, int64_t two) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>keys.values
    cdef int64_t size = offsets[one + 1] - offsets[one]
    return (
        size == offsets[two + 1] - offsets[two]
        and (size == 0 or memcmp(keys.data + offsets[one], keys.data + offsets[two], size) == 0)
    )


cdef bint replace(Replaced* replaced, int64_t row) noexcept nogil:
    cdef int64_t capacity
    cdef int64_t* rows
    if replaced.count == replaced.capacity:
        capacity = 2 * replaced.capacity + 64
        rows = <int64_t*>realloc(replaced.rows, capacity * sizeof(int64_t))
        if rows == NULL:
            return False
        replaced.rows, replaced.capacity = rows, capacity
    replaced.rows[replaced.count] = row
    replaced.count += 1
    return True


cdef bint find_replaced(KeySearch* search, const Growing* keys, int32_t space, int64_t first, int64_t last) noexcept nogil:
    # Marks entries of a map whose key comes again. Returns False if memory is out.
    cdef Replaced* replaced = &search.replaced[space]
    cdef const int32_t* offsets = <const int32_t*>keys.values
    cdef int64_t size = 16
    cdef int64_t row, at, later
    cdef int32_t* hashed
    if last - first <= FEW_KEYS:
        for row in range(first, last):
            for later in range(row + 1, last):
                if same_keys(keys, row, later):
                    if not replace(replaced, row):
                        return False
                    break
        return True
    while size < 2 * (last - first):
        size *= 2
    if search.hashed_size < size:
        hashed = <int32_t*>realloc(search.hashed, size * sizeof(int32_t))
        if hashed == NULL:
            return False
        search.hashed, search.hashed_size = hashed, size
    memset(search.hashed, 0, size * sizeof(int32_t))
    # From the last entry to the first: a key that is there already comes again.
    for row in range(last - 1, first - 1, -1):
        at = hash_text(keys.data + offsets[row], offsets[row + 1] - offsets[row], search.seed) & (size - 1)
        while search.hashed[at] and not same_keys(keys, search.hashed[at] - 1, row):
            at = (at + 1) & (size - 1)
        if search.hashed[at]:
            if not replace(replaced, row):
                return False
        else:
            search.hashed[at] = <int32_t>(row + 1)
    return True


cdef void forget_replaced(Replaced* replaced, int64_t rows) noexcept nogil:
    # Forgets entries from this row on.
    while replaced.count and replaced.rows[replaced.count - 1] >= rows:
        replaced.count -= 1


cdef bint open_search(KeySearch* search, int spaces) noexcept:
    search.seed = SEED
    search.replaced = <Replaced*>calloc(spaces, sizeof(Replaced))
    return search.replaced != NULL


cdef void close_search(KeySearch* search, int spaces) noexcept:
    cdef int i
    if search.replaced != NULL:
        for i in range(spaces):
            free(search.replaced[i].rows)
    free(search.replaced)
    free(search.hashed)


cdef object replaced_rows(const KeySearch* search, int space):
    # The entries of maps in this space whose key comes again in the map, as 64-bit rows. None if there are none.
    cdef Replaced* replaced = &search.replaced[space]
    if replaced.count == 0:
        return None
    return (<uint8_t*>replaced.rows)[:replaced.count * sizeof(int64_t)]
