# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes rows to values in canonical form, from the last byte to the first: so a length is known before it is written.

It writes everything that a row has, and checks nothing against the schema except the names of enums. It skips a column
that is empty in all rows.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.kernel.octets cimport load32, load64
from schema_mapping.protobuf.kernel.aside cimport Stretch, split_aside
from schema_mapping.kernel.blocks cimport Block, buffer_of, new_block
from schema_mapping.protobuf.kernel.flat cimport FLAT_BYTES, FLAT_FEWEST, Flat, is_flat, write_flat
from schema_mapping.protobuf.kernel.json_wire cimport JsonReader, free_reader, json_bytes
from schema_mapping.protobuf.kernel.numbers cimport number_enums, put_number, wire_number
from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.sources cimport Source, bind_root, foresee, free_kept, is_null, meet_nanos, text_place
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_IMPLICIT, FIELD_LIST, FIELD_NANOS, FIELD_PACKED, Field, NODE_ASIDE, NODE_CUT, NODE_JSON, NODE_NATIVE, NODE_TIMESTAMP,
    NODE_WRAPPER, Node, OP_ASIDE, OP_BYTES, OP_FLOAT, OP_GROUP, OP_MAP, Tables,
)
from schema_mapping.protobuf.kernel.well_known cimport split_duration, split_timestamp
from schema_mapping.protobuf.kernel.wire cimport put_varint
from schema_mapping.protobuf.kernel.writer cimport (
    NOT_A_FORM, NOT_AS_MANY, NOT_JSON, OUT_OF_MEMORY, ROOM, TOO_LONG, Writer, make_room, put_bytes, put_stretch, put_tag, set_start,
)

cdef enum:
    SECONDS_TAG = 8
    NANOS_TAG = 16


cdef uint8_t* put_rest(Writer* w, uint8_t* p, const Node* node, const Source* source, int64_t i) noexcept nogil:
    # Writes the unknown bytes after those of fields without a column, which are written in their places.
    cdef int64_t at = i + source.shift
    cdef const uint8_t* start = NULL
    cdef const uint8_t* end = NULL
    if not is_null(source, i):
        start = source.data + source.offsets[at]
        end = source.data + source.offsets[at + 1]
    return put_stretch(w, p, split_aside(w.reader, node, w.aside_fields, start, end, w.aside), end)


cdef uint8_t* write_message(Writer* w, int index, int64_t i, uint8_t* p) noexcept nogil:
    # Writes the content of a message, from row i of its space.
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
    # Writes the content of a time or of a JSON message, from its one column; nothing for a null.
    cdef int64_t at = i + source.shift
    cdef int64_t seconds, nanos
    if is_null(source, i) or p == NULL:
        return p
    if node.flags & NODE_JSON:
        at = text_place(source, i)
        return write_json(
            w, node.flags, source.data + source.offsets[at], source.offsets[at + 1] - source.offsets[at], p
        )
    p = make_room(w, p, ROOM)
    if p == NULL:
        return NULL
    if node.flags & NODE_TIMESTAMP:
        split_timestamp(<int64_t>load64(source.values + at * 8), &seconds, &nanos)
        nanos += kept_nanos(&w.sources.fields[node.first_field + 1], i)
    else:
        split_duration(<int64_t>load64(source.values + at * 8), &seconds, &nanos)
    if nanos:
        p = put_varint(put_varint(p, <uint64_t>nanos), NANOS_TAG)
    if seconds:
        p = put_varint(put_varint(p, <uint64_t>seconds), SECONDS_TAG)
    return p


cdef inline int64_t kept_nanos(const Source* source, int64_t i) noexcept nogil:
    # The nanoseconds of a time that have a column, or 0.
    if source.values == NULL or is_null(source, i):
        return 0
    return <int32_t>load32(source.values + (i + source.shift) * 4)


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
        foresee(source.offsets + i + source.shift)
        if field.flags & FIELD_NANOS and not meet_nanos(&w.sources, index, i):
            w.failure, w.failed_field = NOT_AS_MANY, index
            return NULL
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
    # Writes a key and a value, also if they are defaults.
    cdef int key = w.nodes[field.node].first_field
    cdef int64_t written = w.end - p
    p = write_value(w, key + 1, &w.sources.fields[key + 1], i, p)
    if p != NULL:
        p = write_value(w, key, &w.sources.fields[key], i, p)
    if p != NULL:
        p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_tag(put_varint(p, w.end - p - written), field)


cdef inline uint8_t* write_number(Writer* w, const Field* field, uint64_t value, uint8_t* p) noexcept nogil:
    # Writes a number and its tag; nothing if it is an implicit default.
    if w.failure:
        return NULL
    if value == 0 and field.flags & FIELD_IMPLICIT:
        return p
    p = make_room(w, p, ROOM)
    return NULL if p == NULL else put_tag(put_number(p, field.op, value), field)


cdef uint8_t* write_value(Writer* w, int index, const Source* source, int64_t i, uint8_t* p) noexcept nogil:
    # Writes one value and its tag; nothing if it is an implicit default.
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
    """The bytes of the values, one after the other, and `length + 1` offsets of 4 or 8 bytes each."""

    cdef readonly object data
    cdef readonly object offsets


cdef failure_text(int failure):
    return {NOT_AS_MANY: "nanos", NOT_JSON: "json", NOT_A_FORM: "form"}.get(failure, "enum")


def encode_rows(Tables tables not None, capsule, *, int64_t guess, bint wide):
    """Encodes the struct array in an Arrow capsule; `guess` is the memory to start with, `wide` asks for long offsets.

    Texts may be in dictionaries with places of 32 bits. Raises TypeError if the array lacks the tables' children, or a
    dictionary is too large or lacks a place. Raises ValueError, with the row, the field's number and
    "enum", "json", "form" or "nanos", if an enum's text is neither a name nor a number, a text isn't JSON of its kind,
    a form isn't known, or there are more or fewer nanoseconds than times. Raises OverflowError if the offsets must be wide, and MemoryError.
    """
    cdef const ArrowArray* array = <const ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    cdef Writer w
    cdef Flat flat
    cdef Encoded result = Encoded()
    cdef Block values = new_block(guess + ROOM)
    cdef Block starts = new_block((array.length + 1) * (8 if wide else 4))
    cdef Block slots
    cdef list owner = [values]
    cdef uint8_t* p = NULL
    cdef int64_t row = 0
    memset(&w, 0, sizeof(Writer))
    memset(&flat, 0, sizeof(Flat))
    look_up_in(&w, tables)
    w.owner = <void*>owner
    w.start = values.data
    w.end = values.data + values.capacity
    w.short_starts = NULL if wide else <int32_t*>starts.data
    w.long_starts = <int64_t*>starts.data if wide else NULL
    try:
        if not reserve_sources(&w, tables):
            raise MemoryError
        if not bind_root(&w.sources, array):
            raise TypeError("the rows have other columns than the mapping, or dictionaries that can't be used")
        if w.sources.no_memory or not number_enums(&w, tables.field_count):
            raise MemoryError
        if array.length >= FLAT_FEWEST and is_flat(&w, &flat):
            slots = new_block(FLAT_BYTES)
            flat.slots = slots.data
            flat.plain = is_plain(array, tables)
        with nogil:
            put_late(&w, tables.late, w.sources.late)
            put_late(&w, tables.late_columns, w.sources.late_columns)
            p = write_rows(&w, &flat, array.length, &row)
        if p == NULL:
            if w.failure == OUT_OF_MEMORY:
                raise MemoryError
            if w.failure == TOO_LONG:
                raise OverflowError
            raise ValueError(row, tables.numbers[w.failed_field], failure_text(w.failure))
        result.data = buffer_of(owner[0], p - w.start, w.end - p)
        result.offsets = buffer_of(starts, 0, (array.length + 1) * (8 if wide else 4))
        return result
    finally:
        free_sources(&w)


cdef void look_up_in(Writer* w, Tables tables) noexcept:
    w.fields = tables.fields
    w.nodes = tables.nodes
    w.enums = tables.enums
    w.enum_names = tables.enum_names
    w.enum_numbers = tables.enum_numbers
    w.name_lookup = tables.name_lookup
    w.names = tables.names
    w.places = tables.places
    w.late_places = tables.late
    w.in_order.fields = tables.fields
    w.in_order.places = tables.places
    w.oneofs_last.fields = tables.late_fields
    w.oneofs_last.places = tables.late_places
    w.in_order.numbers = w.oneofs_last.numbers = tables.numbers
    w.sources.tables_fields = tables.fields
    w.sources.tables_nodes = tables.nodes
    w.form_text = tables.names + tables.names_size - tables.form_size
    w.form_size = tables.form_size
    w.columns_form_size = tables.columns_form_size
    w.node_count = tables.node_count


cdef bint reserve_sources(Writer* w, Tables tables) noexcept:
    w.sources.fields = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.elements = <Source*>calloc(tables.field_count, sizeof(Source))
    w.sources.unknown = <Source*>calloc(tables.node_count, sizeof(Source))
    w.sources.live = <int32_t*>calloc(tables.field_count, sizeof(int32_t))
    w.sources.live_counts = <int32_t*>calloc(tables.node_count, sizeof(int32_t))
    w.sources.late = <int32_t*>calloc(tables.field_count, sizeof(int32_t))
    w.sources.late_columns = <int32_t*>calloc(tables.field_count, sizeof(int32_t))
    w.sources.is_live = <uint8_t*>calloc(tables.field_count, 1)
    w.aside = <Stretch*>calloc(tables.field_count, sizeof(Stretch))
    return (
        w.sources.fields != NULL and w.sources.elements != NULL and w.sources.unknown != NULL and w.sources.live != NULL
        and w.sources.live_counts != NULL and w.sources.late != NULL and w.sources.late_columns != NULL
        and w.sources.is_live != NULL and w.aside != NULL
    )


cdef void free_sources(Writer* w) noexcept:
    free(w.sources.fields)
    free(w.sources.elements)
    free(w.sources.unknown)
    free(w.sources.live)
    free(w.sources.live_counts)
    free(w.sources.late)
    free(w.sources.late_columns)
    free(w.sources.is_live)
    free(w.aside)
    free_kept(&w.sources)
    free_reader(&w.json)


cdef uint8_t* write_rows(Writer* w, Flat* flat, int64_t count, int64_t* row) noexcept nogil:
    # Writes rows from the last to the first; adjacent flat rows as a batch.
    cdef uint8_t* p = w.end
    cdef uint8_t* batch
    cdef int64_t i = count
    cdef int n
    set_start(w, count, p)
    while i > 0:
        n = 1 if flat.slots == NULL else plain_rows(w, flat, i)
        batch = write_flat(w, flat, i - n, n, p) if n >= FLAT_FEWEST else NULL
        if batch != NULL:
            p = batch
            i -= n
            continue
        if w.failure == OUT_OF_MEMORY:
            return NULL
        w.failure = 0
        while n > 0:
            n -= 1
            i -= 1
            row[0] = i
            p = write_row(w, i, p)
            if p == NULL:
                return NULL
            set_start(w, i, p)
    return p if count_from_start(w, count, w.end - p) else NULL


cdef bint count_from_start(Writer* w, int64_t count, int64_t total) noexcept nogil:
    cdef int64_t i
    if w.short_starts == NULL:
        for i in range(count + 1):
            w.long_starts[i] = total - w.long_starts[i]
        return True
    if total > INT32_MAX:
        w.failure = TOO_LONG
        return False
    for i in range(count + 1):
        w.short_starts[i] = <int32_t>total - w.short_starts[i]
    return True


cdef bint is_plain(const ArrowArray* array, Tables tables) noexcept:
    # Whether the array's own null counts say that no row is null, kept raw or of another form.
    cdef const ArrowArray* raw = array.children[array.n_children - 4]
    cdef const ArrowArray* form = array.children[array.n_children - 2]
    return array.null_count == 0 and raw.null_count == raw.length and form.null_count == form.length


cdef inline int plain_rows(Writer* w, const Flat* flat, int64_t end) noexcept nogil:
    # How many rows before `end` make a batch; 1 if the last one isn't written from columns in canonical order.
    cdef int64_t most = flat.rows if flat.rows < end else end
    cdef int64_t i = end
    if flat.plain:
        return <int>most
    while i > end - most and not is_null(&w.sources.root, i - 1) and is_null(&w.sources.raw, i - 1) and is_null(
        &w.sources.form, i - 1
    ):
        i -= 1
    return <int>(end - i) if end - i >= FLAT_FEWEST else 1


cdef inline uint8_t* write_row(Writer* w, int64_t i, uint8_t* p) noexcept nogil:
    if is_null(&w.sources.root, i):
        return p
    if not is_null(&w.sources.raw, i):
        return put_bytes(w, p, &w.sources.raw, i)
    w.live = w.sources.live
    w.reader = &w.in_order
    w.aside_fields = w.places
    if not is_null(&w.sources.form, i) and not take_form(w, i):
        w.failure = NOT_A_FORM
        return NULL
    p = write_message(w, 0, i, p)
    if p != NULL and w.sources.prefix.offsets != NULL:
        p = put_bytes(w, p, &w.sources.prefix, i)
    return p


cdef bint take_form(Writer* w, int64_t i) noexcept nogil:
    # Takes the field order of the row's form. The older form's text, for columns only, is the end of the newer one's.
    cdef const Source* form = &w.sources.form
    cdef int64_t at = text_place(form, i)
    cdef int64_t size = form.offsets[at + 1] - form.offsets[at]
    if size != w.form_size and size != w.columns_form_size:
        return False
    if memcmp(form.data + form.offsets[at], w.form_text + w.form_size - size, size) != 0:
        return False
    if size != w.form_size:
        w.live = w.sources.late_columns
        return True
    w.live = w.sources.late
    w.reader = &w.oneofs_last
    w.aside_fields = w.late_places
    return True


cdef void put_late(Writer* w, const int32_t* order, int32_t* late) noexcept nogil:
    # Lists the live fields again, in an order that has the members of oneofs last.
    cdef const Node* node
    cdef int32_t* out
    cdef int i, at, k
    for i in range(w.node_count):
        node = &w.nodes[i]
        if w.sources.live_counts[i] == 0:
            continue
        out = late + node.first_field
        for k in range(w.sources.live_counts[i]):
            w.sources.is_live[w.sources.live[node.first_field + k]] = 1
        for at in range(node.first_field, node.first_field + node.field_count):
            if w.sources.is_live[order[at]]:
                out[0] = order[at]
                out += 1
