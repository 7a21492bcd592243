# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads a value by its writer's types into columns, and proves while it reads that the columns give its bytes back.

What the columns can't give back makes a value loose: then it is also kept raw. What no reader takes fails, with the
place.
"""

from libc.stdint cimport INT32_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from schema_mapping.avro.kernel.puts cimport put32, put64, put_boolean, put_present, put_text, put_wide, row_of
from schema_mapping.avro.kernel.scalars cimport (
    DAY_MICROS, DAY_MILLIS, HIGHEST_DATE, HIGHEST_MICROS, HIGHEST_MILLIS, LOWEST_DATE, LOWEST_MICROS, LOWEST_MILLIS,
    int128, is_shortest, read_decimal, read_uuid,
)
from schema_mapping.avro.kernel.tables cimport (
    OP_ARRAY, OP_ASIDE, OP_BOOLEAN, OP_BYTES, OP_CUT, OP_DATE, OP_DECIMAL_BYTES, OP_DECIMAL_FIXED, OP_DOUBLE, OP_ENUM,
    OP_FIXED, OP_FLOAT, OP_FLOAT_AS_DOUBLE, OP_INT, OP_INT_AS_LONG, OP_LONG, OP_LONG_FIXED, OP_MAP, OP_NULL, OP_NULLABLE, OP_RECORD,
    OP_STRING, OP_TIME_MICROS, OP_TIME_MILLIS, OP_TIMESTAMP_MICROS, OP_TIMESTAMP_MILLIS, OP_UNION, OP_UUID_TEXT, Node,
)
from schema_mapping.avro.kernel.varints cimport read_int, read_long
from schema_mapping.kernel.growing cimport Growing, mark, note_too_large, ready
from schema_mapping.kernel.map_keys cimport find_replaced
from schema_mapping.kernel.octets cimport is_ascii, load32, load64, utf8_step

cdef enum:
    BLOCK = 100         # items of a sized block
    UUID_LETTERS = 36


cdef inline const uint8_t* read_length(Reading* r, const uint8_t* p, int64_t* size) noexcept nogil:
    # Reads a length whose bytes are all there.
    cdef const uint8_t* start = p
    p = read_long(r, p, size)
    if p == NULL:
        return NULL
    if size[0] < 0:
        return fail(r, BAD_LENGTH, start)
    if size[0] > r.end - p:
        return fail(r, TRUNCATED, start)
    return p


cdef inline bint is_text(Reading* r, const uint8_t* p, int64_t size) noexcept nogil:
    cdef const uint8_t* end = p + size
    cdef int step
    if is_ascii(p, size, r.limit):
        return True
    while p < end:
        step = utf8_step(p, end)
        if step < 0:
            return False
        p += step
    return True


cdef const uint8_t* put_string(
    Reading* r, int32_t out, const uint8_t* start, int64_t size, const uint8_t* p
) noexcept nogil:
    # Puts a text; U+FFFD for what isn't UTF-8.
    cdef const uint8_t* end = start + size
    cdef uint8_t* mended
    cdef int64_t length = 0
    cdef int step
    if is_text(r, start, size):
        return put_text(r, out, start, size, p)
    r.loose = True
    if out < 0:
        return p
    if size > INT32_MAX // 3:
        return fail(r, TOO_LARGE, start)
    if r.mended_size < 3 * size:
        mended = <uint8_t*>realloc(r.mended, 3 * size)
        if mended == NULL:
            return fail(r, STOPPED, start)
        r.mended, r.mended_size = mended, 3 * size
    while start < end:
        step = utf8_step(start, end)
        if step > 0:
            memcpy(r.mended + length, start, step)
            start += step
            length += step
        else:
            r.mended[length] = 0xEF
            r.mended[length + 1] = 0xBF
            r.mended[length + 2] = 0xBD
            start -= step
            length += 3
    return put_text(r, out, r.mended, length, p)


cdef const uint8_t* read_string(Reading* r, int32_t out, const uint8_t* p) noexcept nogil:
    cdef int64_t size = 0
    p = read_length(r, p, &size)
    if p == NULL:
        return NULL
    return put_string(r, out, p, size, p + size)


cdef const uint8_t* read_whole_number(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    # Reads a type that is an int or long: as it is, or as a time that the column must be able to hold.
    cdef int64_t value = 0
    cdef int op = node.op
    if op == OP_INT or op == OP_INT_AS_LONG or op == OP_DATE or op == OP_TIME_MILLIS:
        p = read_int(r, p, &value)
    else:
        p = read_long(r, p, &value)
    if p == NULL:
        return NULL
    if op == OP_LONG or op == OP_INT_AS_LONG:
        return put64(r, node, <uint64_t>value, p)
    if op == OP_INT:
        return put32(r, node, <uint32_t>value, p)
    if op == OP_DATE:
        if LOWEST_DATE <= value <= HIGHEST_DATE:
            return put32(r, node, <uint32_t>value, p)
    elif op == OP_TIME_MILLIS:
        if 0 <= value < DAY_MILLIS:
            return put64(r, node, <uint64_t>(value * 1000), p)
    elif op == OP_TIME_MICROS:
        if 0 <= value < DAY_MICROS:
            return put64(r, node, <uint64_t>value, p)
    elif op == OP_TIMESTAMP_MILLIS:
        if LOWEST_MILLIS <= value <= HIGHEST_MILLIS:
            return put64(r, node, <uint64_t>(value * 1000), p)
    elif LOWEST_MICROS <= value <= HIGHEST_MICROS:
        return put64(r, node, <uint64_t>value, p)
    r.loose = True
    return p


cdef const uint8_t* read_decimal_value(
    Reading* r, const Node* node, const uint8_t* start, int64_t size, const uint8_t* p
) noexcept nogil:
    cdef int128 value = 0
    if not read_decimal(start, size, node.count, &value):
        r.loose = True
        return p
    if node.op == OP_DECIMAL_BYTES and not is_shortest(start, size):
        r.loose = True
    return put_wide(r, node, &value, 16, p)


cdef const uint8_t* read_uuid_text(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef uint8_t uuid[16]
    cdef int64_t size = 0
    p = read_length(r, p, &size)
    if p == NULL:
        return NULL
    if size != UUID_LETTERS or not read_uuid(p, uuid):
        r.loose = True
        return p + size
    return put_wide(r, node, uuid, 16, p + size)


cdef const uint8_t* read_float(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef uint32_t bits
    cdef uint64_t wide
    cdef float number
    cdef double wider
    if r.end - p < 4:
        return fail(r, TRUNCATED, p)
    bits = load32(p)
    if bits & 0x7fc00000 == 0x7f800000 and bits & 0x3fffff:
        r.loose = True  # a signaling NaN: it becomes a quiet one once its column is widened
    if node.op == OP_FLOAT:
        return put32(r, node, bits, p + 4)
    memcpy(&number, &bits, 4)
    wider = number
    memcpy(&wide, &wider, 8)
    if number != number:
        r.loose = True  # the bits of a NaN may change
    return put64(r, node, wide, p + 4)


cdef const uint8_t* read_enum(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef const uint8_t* start = p
    cdef int64_t index = 0
    cdef uint64_t slot
    p = read_int(r, p, &index)
    if p == NULL:
        return NULL
    if index < 0 or index >= node.count:
        return fail(r, BAD_ENUM, start)
    slot = r.symbols[node.first + index]
    return put_text(r, node.out, r.texts + (slot >> 32), <uint32_t>slot, p)


cdef const uint8_t* read_branch(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef const uint8_t* start = p
    cdef const Node* branch
    cdef int64_t index = 0
    p = read_int(r, p, &index)
    if p == NULL:
        return NULL
    if node.op == OP_NULLABLE:
        if index != 0 and index != 1:
            return fail(r, BAD_UNION, start)
        if index == node.count:
            return p
        return read_value(r, &r.nodes[node.first], p, depth)
    if index < 0 or index >= node.count:
        return fail(r, BAD_UNION, start)
    branch = &r.nodes[node.first + index]
    if node.out >= 0 and branch.op != OP_NULL and branch.op != OP_ASIDE:
        p = put_present(r, node.out, p)
        if p == NULL:
            return NULL
    return read_value(r, branch, p, depth)


cdef const uint8_t* read_items(Reading* r, const Node* node, const uint8_t* p, int64_t count, int depth) noexcept nogil:
    cdef const Node* item = &r.nodes[node.first]
    cdef int64_t i
    for i in range(count):
        if node.out >= 0:
            r.counts[node.space] += 1
            r.memory -= r.row_bytes[node.space]
            if r.memory < 0:
                return fail(r, TOO_LARGE, p)
        if node.op == OP_MAP:
            p = read_string(r, node.extra if node.out >= 0 else -1, p)
            if p == NULL:
                return NULL
        p = read_value(r, item, p, depth)
        if p == NULL:
            return NULL
    return p


cdef const uint8_t* read_blocks(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    # Reads the blocks of an array or map, and notes in which form they are.
    cdef bint is_empty = node.op == OP_ARRAY and r.nodes[node.first].is_empty
    cdef bint is_sized, is_last = False
    cdef bint was_short = False
    cdef const uint8_t* start
    cdef const uint8_t* body
    cdef int64_t blocks = 0
    cdef int64_t count = 0
    cdef int64_t size = 0
    while not is_last:
        start = p
        p = read_long(r, p, &count)
        if p == NULL:
            return NULL
        if count == 0:
            is_last = True
            continue
        is_sized = count < 0
        if is_sized:
            if count == INT64_MIN:
                return fail(r, BAD_COUNT, start)
            count = -count
            p = read_long(r, p, &size)
            if p == NULL:
                return NULL
        if is_empty:
            r.free_items -= count if count <= r.free_items else r.free_items + 1
            if r.free_items < 0:
                return fail(r, TOO_LARGE, start)
        elif count > r.end - p:
            return fail(r, TRUNCATED, start)
        body = p
        p = read_items(r, node, p, count, depth)
        if p == NULL:
            return NULL
        if not is_sized or was_short or count > BLOCK or size != p - body:
            r.is_sized = False
        if is_sized or blocks > 0:
            r.is_plain = False
        was_short = count < BLOCK
        blocks += 1
    return p


cdef const uint8_t* read_list(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef Growing* column
    cdef int64_t row, first, count, replaced
    if node.out < 0:
        return read_blocks(r, node, p, depth)
    column = &r.columns[node.out]
    row = row_of(r, column)
    first = r.counts[node.space]
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    p = read_blocks(r, node, p, depth)
    if p == NULL:
        return NULL
    count = r.counts[node.space]
    if count >= INT32_MAX:
        note_too_large(r.owner)
        return fail(r, STOPPED, p)
    (<int32_t*>column.values)[row + 1] = <int32_t>count
    column.data_size = count
    mark(column, row)
    if node.op == OP_MAP and count - first > 1:
        replaced = r.search.replaced[node.space].count
        if not find_replaced(&r.search, &r.columns[node.extra], node.space, first, count):
            return fail(r, STOPPED, p)
        if r.search.replaced[node.space].count > replaced:
            r.loose = True
    return p


cdef const uint8_t* read_cut(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    # Keeps a type's bytes whole, in any form.
    cdef const uint8_t* start = p
    cdef bint loose = r.loose
    cdef bint is_plain = r.is_plain
    cdef bint is_sized = r.is_sized
    p = read_value(r, &r.nodes[node.first], p, depth)
    if p == NULL:
        return NULL
    r.loose, r.is_plain, r.is_sized = loose, is_plain, is_sized
    p = put_present(r, node.space, p)
    if p == NULL:
        return NULL
    return put_text(r, node.out, start, p - start, p)


cdef const uint8_t* read_record(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef const Node* field = &r.nodes[node.first]
    cdef const Node* end = field + node.count
    p = put_present(r, node.out, p)
    while p != NULL and field < end:
        # Records without bytes and columns are skipped: nested by doubling, they would take exponential time.
        if not (field.op == OP_RECORD and field.is_empty and field.out < 0):
            p = read_value(r, field, p, depth)
        field += 1
    return p


cdef const uint8_t* read_value(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef int op = node.op
    cdef int64_t number = 0
    if op == OP_INT or op == OP_LONG or op == OP_INT_AS_LONG or OP_DATE <= op <= OP_TIMESTAMP_MICROS:
        return read_whole_number(r, node, p)
    elif op == OP_STRING:
        return read_string(r, node.out, p)
    elif op == OP_DOUBLE:
        if r.end - p < 8:
            return fail(r, TRUNCATED, p)
        return put64(r, node, load64(p), p + 8)
    elif op == OP_FLOAT or op == OP_FLOAT_AS_DOUBLE:
        return read_float(r, node, p)
    elif op == OP_BOOLEAN:
        if p >= r.end:
            return fail(r, TRUNCATED, p)
        if p[0] > 1:
            r.loose = True
        return put_boolean(r, node, p[0] == 1, p + 1)
    elif op == OP_BYTES or op == OP_DECIMAL_BYTES:
        p = read_length(r, p, &number)
        if p == NULL:
            return NULL
        if op == OP_DECIMAL_BYTES:
            return read_decimal_value(r, node, p, number, p + number)
        return put_text(r, node.out, p, number, p + number)
    elif op == OP_ENUM:
        return read_enum(r, node, p)
    elif op == OP_UUID_TEXT:
        return read_uuid_text(r, node, p)
    elif op == OP_FIXED or op == OP_LONG_FIXED or op == OP_DECIMAL_FIXED:
        if r.end - p < node.space:
            return fail(r, TRUNCATED, p)
        if op == OP_LONG_FIXED:
            return put_text(r, node.out, p, node.space, p + node.space)
        if op == OP_FIXED:
            return put_wide(r, node, p, node.space, p + node.space)
        return read_decimal_value(r, node, p, node.space, p + node.space)
    elif op == OP_NULL:
        return p
    if depth == 0:
        return fail(r, TOO_DEEP, p)
    depth -= 1
    if op == OP_NULLABLE or op == OP_UNION:
        return read_branch(r, node, p, depth)
    elif op == OP_RECORD:
        return read_record(r, node, p, depth)
    elif op == OP_ARRAY or op == OP_MAP:
        return read_list(r, node, p, depth)
    elif op == OP_CUT:
        return read_cut(r, node, p, depth)
    r.loose = True
    return read_value(r, &r.nodes[node.first], p, depth)
