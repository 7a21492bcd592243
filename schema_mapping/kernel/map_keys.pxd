# Finds keys that come twice in a map.

from libc.stdint cimport int32_t, int64_t, uint64_t

from schema_mapping.kernel.growing cimport Growing

# Entries of a map whose key comes again later in it, by ascending row.
cdef struct Replaced:
    int64_t* rows
    int64_t count
    int64_t capacity

cdef struct KeySearch:
    Replaced* replaced      # by row space
    int32_t* hashed         # a hash table of a map's keys: row + 1, or 0
    int64_t hashed_size
    uint64_t seed


cdef bint find_replaced(KeySearch* search, const Growing* keys, int32_t space, int64_t first, int64_t last) noexcept nogil
cdef void forget_replaced(Replaced* replaced, int64_t rows) noexcept nogil
cdef bint open_search(KeySearch* search, int spaces) noexcept
cdef void close_search(KeySearch* search, int spaces) noexcept
cdef object replaced_rows(const KeySearch* search, int space)
