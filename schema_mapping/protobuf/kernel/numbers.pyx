# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the numbers of enum values, whose columns hold texts."""

from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from schema_mapping.protobuf.kernel.sources cimport Source, foresee, keep
from schema_mapping.protobuf.kernel.tables cimport Enumeration, OP_BOOL, OP_LAST_VARINT, hash_name
from schema_mapping.protobuf.kernel.writer cimport NOT_A_NUMBER, Writer


cdef int64_t enum_number(Writer* w, int index, const Source* source, int64_t at) noexcept nogil:
    # The number of a text: a declared name, or decimal digits.
    cdef const Enumeration* e = &w.enums[w.fields[index].enumeration]
    cdef const uint8_t* text = source.data + source.offsets[at]
    cdef int64_t size = source.offsets[at + 1] - source.offsets[at]
    cdef uint32_t place
    cdef int found
    cdef uint64_t slot
    foresee(source.offsets + at)
    foresee(text)
    if size and text[0] > 57:
        place = hash_name(text, size) & <uint32_t>e.name_mask
        while True:
            found = w.name_lookup[e.by_name + <int64_t>place]
            if found == 0:
                break
            slot = w.enum_names[found - 1]
            if <int64_t><uint32_t>slot == size and memcmp(
                w.names + (<uint32_t>(slot >> 32) & 0x7FFFFFFF), text, size
            ) == 0:
                return w.enum_numbers[found - 1]
            place = (place + 1) & <uint32_t>e.name_mask
    return decimal_number(w, index, text, size)


cdef bint number_enums(Writer* w, int field_count) noexcept nogil:
    # Finds the numbers of enums' texts that are in dictionaries. False if memory is out.
    cdef int index
    for index in range(field_count):
        if not OP_BOOL < w.fields[index].op <= OP_LAST_VARINT:
            continue
        if not number_entries(w, index, &w.sources.fields[index]):
            return False
        if not number_entries(w, index, &w.sources.elements[index]):
            return False
    return True


cdef bint number_entries(Writer* w, int index, Source* source) noexcept nogil:
    # Finds the numbers of all texts of an enum's dictionary, if it has one. False if memory is out.
    cdef int64_t* numbers
    cdef int64_t i
    if source.entries == NULL:
        return True
    numbers = <int64_t*>keep(&w.sources, (source.offsets - 1)[0] * <int64_t>8)
    if numbers == NULL:
        return False
    for i in range((source.offsets - 1)[0]):
        numbers[i] = enum_number(w, index, source, i)
        if w.failure:
            numbers[i] = INT64_MIN      # it matters only if a row has it
            w.failure = w.failed_field = 0
    source.values = <const uint8_t*>numbers
    return True


cdef int64_t decimal_number(Writer* w, int index, const uint8_t* text, int64_t size) noexcept nogil:
    cdef bint negative = size > 1 and text[0] == 45
    cdef int64_t value = 0
    cdef int64_t i
    cdef bint fine = 0 < size < 12
    for i in range(negative, size):
        if not fine or text[i] < 48 or text[i] > 57:
            fine = False
            break
        value = value * 10 + text[i] - 48
    if negative:
        value = -value
    if not fine or not INT32_MIN <= value <= INT32_MAX:
        w.failure = NOT_A_NUMBER
        w.failed_field = index
        return 0
    return value
