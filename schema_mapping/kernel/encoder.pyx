# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows to values in canonical form, written from the last byte to the first: lengths are known before their tags.

Everything a row says is written, nothing is checked against the schema but the names of enums. A column that holds
nothing in any row isn't looked at in each.
"""

import numpy as np
from pyarrow import allocate_buffer, system_memory_pool

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.kernel.aside cimport Stretch, split_aside
from schema_mapping.kernel.json_wire cimport JsonReader, free_reader, json_bytes
from schema_mapping.kernel.numbers cimport put_number, wire_number
from schema_mapping.kernel.scratch cimport Scratch
from schema_mapping.kernel.sources cimport Source, bind_root, is_null
from schema_mapping.kernel.tables cimport (
    FIELD_IMPLICIT, FIELD_LIST, FIELD_PACKED, Field, NODE_ASIDE, NODE_CUT, NODE_JSON, NODE_NATIVE, NODE_TIMESTAMP,
    NODE_WRAPPER, Node, OP_ASIDE, OP_BYTES, OP_FLOAT, OP_GROUP, OP_MAP, Tables,
)
from schema_mapping.kernel.well_known cimport split_duration, split_timestamp
from schema_mapping.kernel.wire cimport load64, put_varint
from schema_mapping.kernel.writer cimport (
    NOT_A_FORM, NOT_JSON, OUT_OF_MEMORY, ROOM, Writer, make_room, put_bytes, put_stretch, put_tag,
)

POOL = system_memory_pool()

cdef enum:
    SECONDS_TAG = 8
    NANOS_TAG = 16


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
    cdef const int32_t* live = w.live + node.first_field
    cdef int at
    if node.flags & NODE_NATIVE and not node.flags & NODE_WRAPPER:
        return write_native(w, node, &w.sources.unknown[index], i, p)
    if p != NULL and w.sources.unknown[index].offsets != NULL:
        if node.flags & NODE_ASIDE:
            p = put_rest(w, p, node, &w.sources.unknown[index], i)
        else:
            p = put_bytes(w, p, &w.sources.unknown[index], i)
    for at in range(w.sources.live_counts[index] - 1, -1, -1):
        if p == NULL:
            return NULL
        p = write_field(w, live[at], i, p)
    return p


cdef uint8_t* write_native(Writer* w, const Node* node, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # The content of a time or of a JSON message, from its one column; nothing for a null.
    cdef int64_t at = i + source.shift
    cdef int64_t seconds, nanos
    if is_null(source, i) or p == NULL:
        return p
    if node.flags & NODE_JSON:
        return write_json(
            w, node.flags, source.data + source.offsets[at], source.offsets[at + 1] - source.offsets[at], p
        )
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
    if is_null(source, i):
        return p
    if field.op <= OP_FLOAT and not field.flags & FIELD_LIST:
        return write_number(w, field, wire_number(w, index, source, i + source.shift), p)
    if field.op == OP_ASIDE:
        return put_stretch(w, p, w.aside[index].start, w.aside[index].end)
    if field.flags & FIELD_LIST:
        return write_list(w, index, source.offsets[i + source.shift], source.offsets[i + source.shift + 1], p)
    return write_value(w, index, source, i, p)


cdef uint8_t* write_list(Writer* w, int index, int64_t first, int64_t last, uint8_t* p) noexcept nogil:
    cdef const Field* field = &w.fields[index]
    cdef const Source* source = &w.sources.elements[index]
    cdef int64_t i
    if first == last:
        return p
    if field.flags & FIELD_PACKED:
        return write_run(w, index, source, first, last, p)
    for i in range(last - 1, first - 1, -1):
        p = write_entry(w, field, i, p) if field.op == OP_MAP else write_value(w, index, source, i, p)
        if p == NULL:
            return NULL
    return p


cdef uint8_t* write_run(
    Writer* w, int index, const Source* source, int64_t first, int64_t last, uint8_t* p
) noexcept nogil:
    cdef const Field* field = &w.fields[index]
    cdef int64_t written = w.end - p
    cdef int64_t i
    for i in range(last - 1, first - 1, -1):
        p = make_room(w, p, ROOM)
        if p == NULL:
            return NULL
        p = put_number(p, field.op, 0 if is_null(source, i) else wire_number(w, index, source, i + source.shift))
    if w.failure:
        return NULL
    p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_tag(put_varint(p, w.end - p - written), field)


cdef uint8_t* write_entry(Writer* w, const Field* field, int64_t i, uint8_t* p) noexcept nogil:
    # A key and a value, both whatever they are.
    cdef int key = w.nodes[field.node].first_field
    cdef int64_t written = w.end - p
    p = write_value(w, key + 1, &w.sources.fields[key + 1], i, p)
    if p != NULL:
        p = write_value(w, key, &w.sources.fields[key], i, p)
    if p != NULL:
        p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_tag(put_varint(p, w.end - p - written), field)


cdef inline uint8_t* write_number(Writer* w, const Field* field, uint64_t value, uint8_t* p) noexcept nogil:
    # A number and its tag, or nothing where it is an implicit default.
    if w.failure:
        return NULL
    if value == 0 and field.flags & FIELD_IMPLICIT:
        return p
    p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_tag(put_number(p, field.op, value), field)


cdef uint8_t* write_value(Writer* w, int index, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # One value and its tag, or nothing where it is an implicit default.
    cdef const Field* field = &w.fields[index]
    cdef int64_t written = w.end - p
    cdef int64_t length
    if field.op <= OP_FLOAT:
        # A null counts as zero.
        if is_null(source, i):
            return write_number(w, field, 0, p)
        return write_number(w, field, wire_number(w, index, source, i + source.shift), p)
    p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    if field.op <= OP_BYTES:
        p = put_bytes(w, p, source, i)
        if p == NULL:
            return NULL
        length = w.end - p - written
        if length == 0 and field.flags & FIELD_IMPLICIT:
            return p
        return put_tag(put_varint(p, length), field)
    if field.op == OP_GROUP:
        p = put_varint(p, field.tag + 1)
    p = write_message(w, field.node, i, p)
    if p == NULL and w.failed_field == 0:
        w.failed_field = index
    if p != NULL:
        p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    return put_tag(p if field.op == OP_GROUP else put_varint(p, w.end - p - written), field)


cdef class Encoded:
    """The values' bytes, one after the other at the end of `buffer`, and the `length + 1` places where they start."""

    cdef readonly object buffer
    cdef readonly int64_t size
    cdef readonly object offsets


cdef failure_text(int failure):
    return "json" if failure == NOT_JSON else "form" if failure == NOT_A_FORM else "enum"


def encode_rows(Tables tables not None, capsule, *, int64_t guess):
    """Encodes the struct array in an Arrow capsule; `guess` is the memory to start with, in bytes.

    TypeError when the array hasn't the tables' children; ValueError, with the row, the field's number and "enum" or
    "json", when an enum's text is neither a name nor a number, or a text isn't JSON of its kind; MemoryError.
    """
    cdef const ArrowArray* array = <const ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    cdef Writer w
    cdef Encoded result = Encoded()
    cdef list owner
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
    w.reader.places = tables.places
    owner = [allocate_buffer(guess + ROOM, memory_pool=POOL)]
    result.offsets = np.empty(array.length + 1, dtype=np.int64)
    offsets = <int64_t*><size_t>result.offsets.ctypes.data
    w.owner = <void*>owner
    w.start = <uint8_t*><size_t>owner[0].address
    w.end = w.start + guess + ROOM
    w.sources.tables_fields = tables.fields
    w.sources.tables_nodes = tables.nodes
    w.sources.fields = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.elements = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.unknown = <Source*>calloc(tables.node_count, sizeof(Source))
    w.sources.live = <int32_t*>calloc(tables.field_count, sizeof(int32_t))
    w.sources.live_counts = <int32_t*>calloc(tables.node_count, sizeof(int32_t))
    w.sources.late = <int32_t*>calloc(tables.field_count, sizeof(int32_t))
    w.sources.is_live = <uint8_t*>calloc(tables.field_count, 1)
    w.form_text = tables.names + tables.names_size - tables.form_size
    w.form_size = tables.form_size
    w.aside = <Stretch*>calloc(tables.field_count, sizeof(Stretch))
    try:
        if not (w.sources.fields and w.sources.elements and w.sources.unknown and w.sources.live
                and w.sources.live_counts and w.sources.late and w.sources.is_live and w.aside):
            raise MemoryError
        if not bind_root(&w.sources, array):
            raise TypeError("the rows have other columns than the mapping")
        with nogil:
            put_late(&w, tables)
            p = write_rows(&w, array.length, offsets, &row)
        if p == NULL:
            if w.failure == OUT_OF_MEMORY:
                raise MemoryError
            raise ValueError(row, tables.numbers[w.failed_field], failure_text(w.failure))
        result.buffer = owner[0]
        result.size = w.end - p
        return result
    finally:
        free(w.sources.fields)
        free(w.sources.elements)
        free(w.sources.unknown)
        free(w.sources.live)
        free(w.sources.live_counts)
        free(w.sources.late)
        free(w.sources.is_live)
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
    w.live = w.sources.live
    if not is_null(&w.sources.form, i):
        if not is_late(w, i):
            w.failure = NOT_A_FORM
            return NULL
        w.live = w.sources.late
    p = write_message(w, 0, i, p)
    if p != NULL:
        p = put_bytes(w, p, &w.sources.prefix, i)
    return p


cdef bint is_late(Writer* w, int64_t i) noexcept nogil:
    cdef const Source* form = &w.sources.form
    cdef int64_t at = i + form.shift
    return form.offsets[at + 1] - form.offsets[at] == w.form_size and memcmp(
        form.data + form.offsets[at], w.form_text, w.form_size
    ) == 0


cdef void put_late(Writer* w, Tables tables) noexcept nogil:
    # The lists of live fields once more, with the members of oneofs last.
    cdef const Node* node
    cdef int32_t* out
    cdef int i, at, k
    for i in range(tables.node_count):
        node = &tables.nodes[i]
        if w.sources.live_counts[i] == 0:
            continue
        out = w.sources.late + node.first_field
        for k in range(w.sources.live_counts[i]):
            w.sources.is_live[w.sources.live[node.first_field + k]] = 1
        for at in range(node.first_field, node.first_field + node.field_count):
            if w.sources.is_live[tables.late[at]]:
                out[0] = tables.late[at]
                out += 1
