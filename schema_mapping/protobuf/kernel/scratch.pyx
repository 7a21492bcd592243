# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Allocates, grows and frees the scratch; kept apart from the loops that use it."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from schema_mapping.protobuf.kernel.tables cimport Tables


cdef bint open_scratch(Scratch* s, Tables tables, int64_t value_memory) noexcept:
    # Returns False if memory is out. `value_memory` is the most memory that the rows of one value may take.
    cdef int i
    s.fields = tables.fields
    s.nodes = tables.nodes
    s.layout = tables.spaces
    s.numbers = tables.numbers
    s.lookup = tables.lookup
    s.places = tables.places
    s.enums = tables.enums
    s.enum_numbers = tables.enum_numbers
    s.enum_names = tables.enum_names
    s.enum_lookup = tables.enum_lookup
    s.most_words = value_memory // 8
    s.spaces = <Rows*>calloc(tables.space_count, sizeof(Rows))
    if s.spaces == NULL or reserve_spill(s, tables.names_size + 64) == NULL:
        return False
    for i in range(tables.space_count):
        s.spaces[i].stride = tables.spaces[i].stride
    memcpy(s.spill, tables.names, tables.names_size)
    s.spill_size = tables.names_size
    return True


cdef void close_scratch(Scratch* s, Tables tables) noexcept:
    cdef int i
    if s.spaces != NULL:
        for i in range(tables.space_count):
            free(s.spaces[i].block)
    free(s.spaces)
    free(s.spill)
    free(s.pieces)


cdef bint grow_rows(Scratch* s, Rows* rows, int64_t more) noexcept nogil:
    cdef int64_t capacity = rows.capacity * 2
    cdef void* block
    if capacity < rows.count + more:
        capacity = rows.count + more
    if capacity < 64:
        capacity = 64
    block = realloc(rows.block, capacity * rows.stride * 8)
    if block == NULL:
        s.failure = NO_MEMORY
        return False
    rows.block = <uint64_t*>block
    memset(rows.block + rows.capacity * rows.stride, 0, (capacity - rows.capacity) * rows.stride * 8)
    rows.capacity = capacity
    return True
