# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows to values in canonical form, written from the last byte to the first: lengths are known before their tags.

Everything a row says is written, nothing is checked against the schema but the names of enums.
"""

import numpy as np
from pyarrow import allocate_buffer

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.kernel.aside cimport Stretch, split_aside
from schema_mapping.kernel.json_wire cimport JsonReader, free_reader, json_bytes
from schema_mapping.kernel.scratch cimport Scratch
from schema_mapping.kernel.sources cimport Source, Sources, bind_root, is_null
from schema_mapping.kernel.tables cimport (
    Enumeration, FIELD_IMPLICIT, FIELD_LIST, FIELD_PACKED, FIELD_WIDE, Field, NODE_ASIDE, NODE_CUT, NODE_JSON,
    NODE_NATIVE, NODE_TIMESTAMP, NODE_WRAPPER, Node, OP_ASIDE, OP_BOOL, OP_BYTES, OP_CLOSED_ENUM, OP_DOUBLE, OP_FIXED32,
    OP_FIXED64, OP_FLOAT, OP_GROUP, OP_INT32, OP_INT64, OP_LAST_VARINT, OP_MAP, OP_MESSAGE, OP_OPEN_ENUM, OP_SINT32,
    OP_SINT64, OP_STRING, OP_TEXT, OP_UINT32, Tables, hash_name,
)
from schema_mapping.kernel.well_known cimport split_duration, split_timestamp
from schema_mapping.kernel.wire cimport load32, load64, varint_size, write_varint

cdef enum:
    ROOM = 64           # more than tags, a number and a length take
    NOT_A_NUMBER = 1    # failures
    OUT_OF_MEMORY = 2
    NOT_JSON = 3
    SECONDS_TAG = 8
    NANOS_TAG = 16

cdef struct Writer:
    const Field* fields
    const Node* nodes
    const Enumeration* enums
    const uint64_t* enum_names
    const int32_t* enum_numbers
    const int32_t* name_lookup
    const uint8_t* names
    Sources sources
    Scratch reader          # of the unknown bytes
    Stretch* aside          # for each field without a column: where it lies in its message's unknown bytes
    uint8_t* start
    uint8_t* end
    JsonReader json
    void* owner             # the Encoded whose buffer it is
    int failure
    int failed_field


cdef uint8_t* grow(Writer* w, uint8_t* p, int64_t more) noexcept with gil:
    # What is written moves to the end of a larger buffer.
    cdef int64_t written = w.end - p
    cdef int64_t capacity = max((w.end - w.start) * 2, written + more)
    cdef uint8_t* start
    try:
        buffer = allocate_buffer(capacity)
    except MemoryError:
        w.failure = OUT_OF_MEMORY
        return NULL
    start = <uint8_t*><size_t>buffer.address
    memcpy(start + capacity - written, p, written)
    (<Encoded>w.owner).buffer = buffer
    w.start = start
    w.end = start + capacity
    return w.end - written


cdef inline uint8_t* make_room(Writer* w, uint8_t* p, int64_t more) noexcept nogil:
    return p if p - w.start >= more else grow(w, p, more)


cdef inline uint8_t* put_varint(uint8_t* p, uint64_t value) noexcept nogil:
    p -= varint_size(value)
    write_varint(p, value)
    return p


cdef inline uint8_t* put_bytes(Writer* w, uint8_t* p, const Source* source, int64_t i) noexcept nogil:
    # The bytes alone; nothing for a null.
    cdef int64_t at = i + source.shift
    cdef int64_t start, length
    if is_null(source, i):
        return p
    start = source.offsets[at]
    length = source.offsets[at + 1] - start
    p = make_room(w, p, length + ROOM)
    if p != NULL and length:
        p -= length
        memcpy(p, source.data + start, length)
    return p


cdef inline uint8_t* put_stretch(Writer* w, uint8_t* p, const uint8_t* start, const uint8_t* end) noexcept nogil:
    if start == end:
        return p
    p = make_room(w, p, end - start + ROOM)
    if p != NULL:
        p -= end - start
        memcpy(p, start, end - start)
    return p


cdef uint8_t* put_rest(Writer* w, uint8_t* p, const Node* node, const Source* source, int64_t i) noexcept nogil:
    # The unknown bytes behind those of fields without a column, which are written in their places.
    cdef int64_t at = i + source.shift
    cdef const uint8_t* start = NULL
    cdef const uint8_t* end = NULL
    if not is_null(source, i):
        start = source.data + source.offsets[at]
        end = source.data + source.offsets[at + 1]
    return put_stretch(w, p, split_aside(&w.reader, node, start, end, w.aside), end)


cdef uint8_t* write_message(Writer* w, int index, int64_t i, uint8_t* p) noexcept nogil:
    # The content of a message in row i of its space.
    cdef const Node* node = &w.nodes[index]
    cdef int at
    if node.flags & NODE_NATIVE and not node.flags & NODE_WRAPPER:
        return write_native(w, node, &w.sources.unknown[index], i, p)
    if p != NULL and w.sources.unknown[index].offsets != NULL:
        if node.flags & NODE_ASIDE:
            p = put_rest(w, p, node, &w.sources.unknown[index], i)
        else:
            p = put_bytes(w, p, &w.sources.unknown[index], i)
    if node.flags & NODE_CUT:
        return p
    for at in range(node.first_field + node.field_count - 1, node.first_field - 1, -1):
        if p == NULL:
            return NULL
        p = write_field(w, at, i, p)
    return p


cdef uint8_t* write_native(Writer* w, const Node* node, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # The content of a time or of a JSON message, from its one column; nothing for a null.
    cdef int64_t at = i + source.shift
    cdef int64_t seconds, nanos
    if is_null(source, i) or p == NULL:
        return p
    if node.flags & NODE_JSON:
        return write_json(w, node.flags, source.data + source.offsets[at], source.offsets[at + 1] - source.offsets[at], p)
    p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    if node.flags & NODE_TIMESTAMP:
        split_timestamp(<int64_t>load64(source.values + at * 8), &seconds, &nanos)
    else:
        split_duration(<int64_t>load64(source.values + at * 8), &seconds, &nanos)
    if nanos:
        p = put_varint(put_varint(p, <uint64_t>nanos), NANOS_TAG)
    if seconds:
        p = put_varint(put_varint(p, <uint64_t>seconds), SECONDS_TAG)
    return p


cdef uint8_t* write_json(Writer* w, int kind, const uint8_t* text, int64_t size, uint8_t* p) noexcept nogil:
    cdef int64_t length = 0
    cdef const uint8_t* content = json_bytes(&w.json, kind, text, size, &length)
    if content == NULL:
        w.failure = OUT_OF_MEMORY if w.json.no_memory else NOT_JSON
        return NULL
    p = make_room(w, p, length + ROOM)
    if p != NULL:
        p -= length
        memcpy(p, content, length)
    return p


cdef inline uint8_t* write_field(Writer* w, int index, int64_t i, uint8_t* p) noexcept nogil:
    cdef const Field* field = &w.fields[index]
    cdef const Source* source = &w.sources.fields[index]
    if field.op == OP_ASIDE:
        return put_stretch(w, p, w.aside[index].start, w.aside[index].end)
    if is_null(source, i):
        return p
    if field.flags & FIELD_LIST:
        return write_list(w, index, source.offsets[i + source.shift], source.offsets[i + source.shift + 1], p)
    return write_value(w, index, source, i, p)


cdef uint8_t* write_list(Writer* w, int index, int64_t first, int64_t last, uint8_t* p) noexcept nogil:
    cdef const Field* field = &w.fields[index]
    cdef const Source* source = &w.sources.elements[index]
    cdef int64_t written = w.end - p
    cdef int64_t i
    if first == last:
        return p
    for i in range(last - 1, first - 1, -1):
        if field.op == OP_MAP:
            p = write_entry(w, field, i, p)
        elif field.flags & FIELD_PACKED:
            p = make_room(w, p, ROOM)
            if p != NULL:
                p = put_number(w, index, source, i, p)
        else:
            p = write_value(w, index, source, i, p)
        if p == NULL:
            return NULL
    if field.flags & FIELD_PACKED:
        p = make_room(w, p, ROOM)
        if p != NULL:
            p = put_varint(put_varint(p, w.end - p - written), field.tag)
    return p


cdef uint8_t* write_entry(Writer* w, const Field* field, int64_t i, uint8_t* p) noexcept nogil:
    # A key and a value, both whatever they are.
    cdef int key = w.nodes[field.node].first_field
    cdef int64_t written = w.end - p
    p = write_value(w, key + 1, &w.sources.fields[key + 1], i, p)
    if p != NULL:
        p = write_value(w, key, &w.sources.fields[key], i, p)
    if p != NULL:
        p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_varint(put_varint(p, w.end - p - written), field.tag)


cdef uint8_t* write_value(Writer* w, int index, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # One value and its tag, or nothing where it is an implicit default.
    cdef const Field* field = &w.fields[index]
    cdef int64_t written
    cdef int64_t length
    p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    written = w.end - p
    if field.op <= OP_FLOAT:
        if field.flags & FIELD_IMPLICIT and is_zero(w, index, source, i):
            return p
        p = put_number(w, index, source, i, p)
        return NULL if p == NULL else put_varint(p, field.tag)
    if field.op <= OP_BYTES:
        p = put_bytes(w, p, source, i)
        if p == NULL:
            return NULL
        length = w.end - p - written
        if length == 0 and field.flags & FIELD_IMPLICIT:
            return p
        return put_varint(put_varint(p, length), field.tag)
    if field.op == OP_GROUP:
        p = put_varint(p, field.tag + 1)
    p = write_message(w, field.node, i, p)
    if p == NULL and w.failed_field == 0:
        w.failed_field = index
    if p != NULL:
        p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    return put_varint(p if field.op == OP_GROUP else put_varint(p, w.end - p - written), field.tag)


cdef inline int64_t width_64(const Field* field) noexcept nogil:
    # Bytes between two values of 64 bits.
    return 16 if field.flags & FIELD_WIDE else 8


cdef inline bint is_zero(Writer* w, int index, const Source* source, int64_t i) noexcept nogil:
    cdef uint8_t op = w.fields[index].op
    i += source.shift
    if op == OP_INT64 or op == OP_SINT64 or op == OP_FIXED64 or op == OP_DOUBLE:
        return load64(source.values + i * width_64(&w.fields[index])) == 0
    elif op == OP_BOOL:
        return not (source.values[i >> 3] >> (i & 7)) & 1
    elif op == OP_OPEN_ENUM or op == OP_CLOSED_ENUM:
        return enum_number(w, index, source, i) == 0 and w.failure == 0
    return load32(source.values + i * 4) == 0


cdef inline uint8_t* put_number(Writer* w, int index, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # A number without its tag; a null counts as zero. There is room.
    cdef uint8_t op = w.fields[index].op
    cdef int64_t at = i + source.shift
    cdef bint null = is_null(source, i)
    cdef uint64_t value
    if op == OP_INT64:
        return put_varint(p, 0 if null else load64(source.values + at * width_64(&w.fields[index])))
    elif op == OP_INT32:
        return put_varint(p, 0 if null else <uint64_t><int64_t><int32_t>load32(source.values + at * 4))
    elif op == OP_UINT32:
        return put_varint(p, 0 if null else load32(source.values + at * 4))
    elif op == OP_BOOL:
        p -= 1
        p[0] = 0 if null else (source.values[at >> 3] >> (at & 7)) & 1
        return p
    elif op == OP_SINT32:
        value = 0 if null else load32(source.values + at * 4)
        return put_varint(p, <uint32_t>(value << 1) ^ (0 - (<uint32_t>value >> 31)))
    elif op == OP_SINT64:
        value = 0 if null else load64(source.values + at * 8)
        return put_varint(p, (value << 1) ^ (0 - (value >> 63)))
    elif op == OP_FIXED64 or op == OP_DOUBLE:
        value = 0 if null else load64(source.values + at * width_64(&w.fields[index]))
        p -= 8
        memcpy(p, &value, 8)
        return p
    elif op == OP_FIXED32 or op == OP_FLOAT:
        value = 0 if null else load32(source.values + at * 4)
        p -= 4
        memcpy(p, &value, 4)
        return p
    value = 0 if null else <uint64_t>enum_number(w, index, source, at)
    return NULL if w.failure else put_varint(p, value)


cdef int64_t enum_number(Writer* w, int index, const Source* source, int64_t at) noexcept nogil:
    # The number that a text names: a declared name, or decimal digits.
    cdef const Enumeration* e = &w.enums[w.fields[index].enumeration]
    cdef const uint8_t* text = source.data + source.offsets[at]
    cdef int64_t size = source.offsets[at + 1] - source.offsets[at]
    cdef uint32_t place
    cdef int found
    cdef uint64_t slot
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


cdef class Encoded:
    """The values' bytes, one after the other at the end of `buffer`, and the `length + 1` places where they start."""

    cdef readonly object buffer
    cdef readonly int64_t size
    cdef readonly object offsets


def encode_rows(Tables tables not None, capsule, *, int64_t guess):
    """Encodes the struct array in an Arrow capsule; `guess` is the memory to start with, in bytes.

    TypeError when the array hasn't the tables' children; ValueError, with the row, the field's number and "enum" or
    "json", when an enum's text is neither a name nor a number, or a text isn't JSON of its kind; MemoryError.
    """
    cdef const ArrowArray* array = <const ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    cdef Writer w
    cdef Encoded result = Encoded()
    cdef int64_t* offsets
    cdef uint8_t* p = NULL
    cdef int64_t row = 0
    w.fields = tables.fields
    w.nodes = tables.nodes
    w.enums = tables.enums
    w.enum_names = tables.enum_names
    w.enum_numbers = tables.enum_numbers
    w.name_lookup = tables.name_lookup
    w.names = tables.names
    w.failure = 0
    w.failed_field = 0
    memset(&w.json, 0, sizeof(JsonReader))
    memset(&w.reader, 0, sizeof(Scratch))
    w.reader.fields = tables.fields
    w.reader.numbers = tables.numbers
    result.buffer = allocate_buffer(guess + ROOM)
    result.offsets = np.empty(array.length + 1, dtype=np.int64)
    offsets = <int64_t*><size_t>result.offsets.ctypes.data
    w.owner = <void*>result
    w.start = <uint8_t*><size_t>result.buffer.address
    w.end = w.start + guess + ROOM
    w.sources.tables_fields = tables.fields
    w.sources.tables_nodes = tables.nodes
    w.sources.fields = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.elements = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.unknown = <Source*>calloc(tables.node_count, sizeof(Source))
    w.aside = <Stretch*>calloc(tables.field_count, sizeof(Stretch))
    try:
        if not (w.sources.fields and w.sources.elements and w.sources.unknown and w.aside):
            raise MemoryError
        if not bind_root(&w.sources, array):
            raise TypeError("the rows have other columns than the mapping")
        with nogil:
            p = write_rows(&w, array.length, offsets, &row)
        if p == NULL:
            if w.failure == OUT_OF_MEMORY:
                raise MemoryError
            raise ValueError(row, tables.numbers[w.failed_field], "json" if w.failure == NOT_JSON else "enum")
        result.size = w.end - p
        return result
    finally:
        free(w.sources.fields)
        free(w.sources.elements)
        free(w.sources.unknown)
        free(w.aside)
        free_reader(&w.json)


cdef uint8_t* write_rows(Writer* w, int64_t count, int64_t* offsets, int64_t* row) noexcept nogil:
    cdef uint8_t* p = w.end
    cdef int64_t i, total
    offsets[count] = 0
    for i in range(count - 1, -1, -1):
        row[0] = i
        p = write_row(w, i, p)
        if p == NULL:
            return NULL
        offsets[i] = w.end - p
    total = w.end - p
    for i in range(count + 1):
        offsets[i] = total - offsets[i]
    return p


cdef inline uint8_t* write_row(Writer* w, int64_t i, uint8_t* p) noexcept nogil:
    if is_null(&w.sources.root, i):
        return p
    if not is_null(&w.sources.raw, i):
        return put_bytes(w, p, &w.sources.raw, i)
    p = write_message(w, 0, i, p)
    if p != NULL:
        p = put_bytes(w, p, &w.sources.prefix, i)
    return p
