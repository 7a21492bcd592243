# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Collects the entries of a Struct before any is written: if a key comes twice, only the last entry counts."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport realloc

from schema_mapping.protobuf.kernel.duplicates cimport mark_equal_keys
from schema_mapping.protobuf.kernel.json_items cimport (
    Content, Cursor, ENTRY_VALUE_TAG, Entry, FIELDS_TAG, Item, Json, add_part, next_item, start_of,
)
from schema_mapping.protobuf.kernel.scratch cimport NO_MEMORY, TOO_LARGE


cdef bint collect_entries(Json* j, const Content* content) noexcept nogil:
    cdef Cursor c = start_of(j, content)
    cdef Item item
    while next_item(j, &c, &item):
        if item.tag != FIELDS_TAG:
            j.exact = False
        elif not collect_entry(j, item.value):
            return False
    return True


cdef bint collect_entry(Json* j, uint64_t range) noexcept nogil:
    # As in upb, an entry with an unknown field is itself an unknown field.
    cdef Content content
    cdef Cursor c
    cdef Entry* entry
    cdef Item item
    cdef int seen = 0
    cdef bint has_value = False
    if j.count == j.capacity and not grow_entries(j):
        return False
    entry = &j.entries[j.count]
    entry.key = 0
    entry.value.range = 0
    entry.value.pieces = 0
    entry.dead = 0
    content.range = range
    content.pieces = 0
    c = start_of(j, &content)
    while next_item(j, &c, &item):
        if item.tag == FIELDS_TAG:
            entry.key = item.value
            if seen != 0:
                j.exact = False
        elif item.tag != ENTRY_VALUE_TAG:
            j.exact = False
            return True
        elif has_value:
            if not add_part(j, &entry.value, item.value):
                return False
        else:
            has_value = True
            entry.value.range = item.value
            if seen != 1:
                j.exact = False
        seen += 1
    if seen != 2:
        j.exact = False
    j.count += 1
    return True


cdef bint grow_entries(Json* j) noexcept nogil:
    cdef int64_t capacity = 2 * j.capacity + 64
    cdef void* grown
    if capacity * <int64_t>sizeof(Entry) > 8 * j.s.most_words:
        j.s.failure = TOO_LARGE
        return False
    grown = realloc(j.entries, capacity * sizeof(Entry))
    if grown == NULL:
        j.s.failure = NO_MEMORY
        return False
    j.entries = <Entry*>grown
    j.capacity = capacity
    return True


cdef bint bury_duplicates(Json* j, int64_t opened) noexcept nogil:
    # Marks all entries of a key except the last as dead.
    cdef int64_t i
    if j.count - opened < 2:
        return True
    j.dead.count = 0
    if not mark_equal_keys(
        j.s, &j.entries[opened].key, sizeof(Entry) // 8, j.count - opened, j.table, &j.dead
    ):
        j.s.failure = NO_MEMORY
        return False
    for i in range(j.dead.count):
        j.entries[opened + j.dead.rows[i]].dead = 1
        j.exact = False
    return True
