# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads a value by its types into columns, and notes how it was written.

What the columns can't give back makes a value loose: then it is also kept raw. What isn't JSON, or of another type, fails
with its place. That the columns and the form give the bytes back is proven by writing them.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp, memcpy

from schema_mapping.json.kernel.numbers cimport NumberText, read_double, read_number_text, styles_of
from schema_mapping.json.kernel.puts cimport (
    pass_space, push_order, put_number, put_present, put_text, refuse, row_of, takes,
)
from schema_mapping.json.kernel.scanning cimport scan_text, skip_literal, skip_value, unescape
from schema_mapping.json.kernel.shapes cimport Shapes, is_first
from schema_mapping.json.kernel.spans cimport is_same
from schema_mapping.json.kernel.tables cimport (
    OP_ARRAY, OP_BOOLEAN, OP_CHOICE, OP_CUT, OP_DOUBLE, OP_INT, OP_LONG, OP_MAP, OP_OBJECT, OP_STRING, OP_TEXT, Node,
)
from schema_mapping.kernel.growing cimport Growing, make_data_room, mark, note_too_large, ready
from schema_mapping.kernel.map_keys cimport find_replaced
from schema_mapping.kernel.octets cimport hash_text

cdef enum:
    QUOTE = 0x22
    MOST_INDENT = 16

cdef uint64_t LARGEST_LONG = 0x7FFFFFFFFFFFFFFF


cdef const uint8_t* read_number(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef NumberText number
    cdef const uint8_t* after = read_number_text(p, r.end, &number)
    cdef double wide = 0
    cdef int64_t whole
    cdef uint64_t rest
    cdef int32_t narrow
    if after == NULL:
        return fail_at(r, number.end)
    if node.op == OP_DOUBLE:
        r.seen.styles &= styles_of(&number)
        if not read_double(&number, &wide) or wide - wide != 0:
            r.loose = True
            return after
        return put_number(r, node.out, &wide, 8, after)
    if number.has_point or number.has_exponent:
        if number.digits and number.count - 1 > number.scale:
            return fail(r, OTHER_TYPE, p)
        r.loose = True
    rest = number.digits
    while number.power < 0 and rest % 10 == 0 and number.is_exact:
        rest //= 10
        number.power += 1
        if rest == 0:
            number.power = 0
    while 0 < number.power <= 19 and rest <= LARGEST_LONG // 10:
        rest *= 10
        number.power -= 1
    if not number.is_exact or (rest and number.power) or rest > LARGEST_LONG + number.is_negative:
        r.loose = True
        return after
    whole = <int64_t>(0 - rest) if number.is_negative else <int64_t>rest
    if node.op == OP_LONG:
        return put_number(r, node.out, &whole, 8, after)
    narrow = <int32_t>whole
    if narrow != whole:
        r.loose = True
        return after
    return put_number(r, node.out, &narrow, 4, after)


cdef const uint8_t* read_string(Reading* r, int32_t out, const uint8_t* p) noexcept nogil:
    # Reads the text whose quote is at p.
    cdef bint has_escapes
    cdef const uint8_t* start = p + 1
    cdef const uint8_t* end = scan_text(r, start, &has_escapes)
    cdef int64_t size = 0
    if end == NULL:
        return NULL
    if not has_escapes:
        return put_text(r, out, start, end - start, end + 1)
    if not unescape(r, start, end, &size):
        return fail(r, STOPPED, p)
    return put_text(r, out, r.mended, size, end + 1)


cdef const uint8_t* read_boolean(Reading* r, const Node* node, const uint8_t* p) noexcept nogil:
    cdef bint value = p[0] == b"t"
    cdef Growing* column = &r.columns[node.out]
    cdef int64_t row = row_of(r, column)
    p = skip_literal(r, p)
    if p == NULL:
        return NULL
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    if value:
        column.values[row >> 3] |= 1 << (row & 7)
    mark(column, row)
    return p


cdef const uint8_t* read_text(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef const uint8_t* end = skip_value(r, p, depth)
    if end == NULL:
        return NULL
    if node.op == OP_CUT and put_present(r, node.extra, p) == NULL:
        return NULL
    return put_text(r, node.out, p, end - p, end)


cdef void note_open(Reading* r, const uint8_t* p, const uint8_t* inside, bint is_array, int depth) noexcept nogil:
    # Notes the space after the first opening bracket: of objects, and of arrays.
    cdef int64_t size = inside - p
    if is_array:
        if r.seen.open_array:
            return
        r.seen.open_array = True
    else:
        if r.seen.open_object:
            return
        r.seen.open_object = True
    if size and (p[0] == 10 or p[0] == 13):
        if r.seen.indent == 0:
            if size == 1 + depth and p[1] == 9:
                r.seen.indent = 1
                r.seen.spaces |= SPACE_TAB
            else:
                r.seen.indent = <int32_t>min((size - 1) // max(depth, 1), <int64_t>MOST_INDENT)
    elif is_array and r.seen.indent:
        r.seen.spaces |= SPACE_INLINE if size else SPACE_FLAT


cdef const uint8_t* pass_comma(Reading* r, const uint8_t* p) noexcept nogil:
    cdef const uint8_t* next = pass_space(r, p + 1)
    if not r.seen.comma:
        r.seen.comma = True
        if next - p == 2 and p[1] == 32:
            r.seen.spaces |= SPACE_COMMA
    return next


cdef const uint8_t* pass_colon(Reading* r, const uint8_t* p) noexcept nogil:
    # Passes the colon after a name that ends at p, and space around it.
    cdef const uint8_t* at = pass_space(r, p)
    cdef const uint8_t* next
    if at >= r.end or at[0] != 0x3A:
        return fail_at(r, at)
    next = pass_space(r, at + 1)
    if not r.seen.colon:
        r.seen.colon = True
        if at != p:
            r.seen.spaces |= SPACE_BEFORE
        if next != at + 1:
            r.seen.spaces |= SPACE_COLON
    return next


cdef bint more_order(Reading* r) noexcept nogil:
    cdef int64_t room = 2 * r.order_room + 64
    cdef int32_t* order = <int32_t*>realloc(r.order, room * sizeof(int32_t))
    if order == NULL:
        return False
    r.order, r.order_room = order, room
    return True


cdef bint push_span(Reading* r, const uint8_t* start, const uint8_t* end) noexcept nogil:
    cdef int64_t room = 2 * r.span_room + 16
    cdef Span* spans
    if r.span_count == r.span_room:
        spans = <Span*>realloc(r.spans, room * sizeof(Span))
        if spans == NULL:
            return False
        r.spans, r.span_room = spans, room
    r.spans[r.span_count].start, r.spans[r.span_count].size = start, end - start
    r.span_count += 1
    return True


cdef bint put_unknown(Reading* r, int32_t out, int64_t first) noexcept nogil:
    # Puts an object's unknown members as the text of an object.
    cdef Growing* column = &r.columns[out]
    cdef int64_t row = row_of(r, column)
    cdef int64_t total = 1
    cdef int64_t i
    cdef uint8_t* p
    for i in range(first, r.span_count):
        total += r.spans[i].size + 1
    if not ready(r.owner, column, row):
        return False
    if column.data_size + total > column.data_room and not make_data_room(r.owner, column, total):
        return False
    p = column.data + column.data_size
    for i in range(first, r.span_count):
        p[0] = 0x7B if i == first else 0x2C
        memcpy(p + 1, r.spans[i].start, r.spans[i].size)
        p += r.spans[i].size + 1
    p[0] = 0x7D
    column.data_size += total
    (<int32_t*>column.values)[row + 1] = <int32_t>column.data_size
    mark(column, row)
    return True


cdef int find_member(Reading* r, const Node* node, const uint8_t* name, int64_t size) noexcept nogil:
    cdef uint32_t at = hash_text(name, size, 0) & <uint32_t>node.mask
    cdef uint64_t slot
    cdef int32_t number
    while True:
        number = r.lookup[node.lookup + at]
        if number == 0:
            return -1
        slot = r.names[number - 1]
        if <int64_t>((<uint32_t>slot) >> 1) == size and memcmp(r.texts + (slot >> 32) + 1, name, size) == 0:
            return number - 1 - node.member
        at = (at + 1) & <uint32_t>node.mask


cdef const uint8_t* read_name(Reading* r, const Node* node, int guess, const uint8_t* p, int* member) noexcept nogil:
    # Reads a member's name: the member that came next in the last object, most of the time. Returns its end.
    cdef uint64_t slot
    cdef const uint8_t* end
    cdef int64_t size = 0
    cdef bint has_escapes
    if p >= r.end or p[0] != QUOTE:
        return fail_at(r, p)
    if 0 <= guess < node.count:
        slot = r.names[node.member + guess]
        size = (<uint32_t>slot >> 1) + 2
        if slot & 1 and r.end - p >= size and is_same(p, r.texts + (slot >> 32), size):
            member[0] = guess
            return p + size
    end = scan_text(r, p + 1, &has_escapes)
    if end == NULL:
        return NULL
    if has_escapes:
        if not unescape(r, p + 1, end, &size):
            return fail(r, STOPPED, p)
        member[0] = find_member(r, node, r.mended, size)
    else:
        member[0] = find_member(r, node, p + 1, end - p - 1)
    return end + 1


cdef bint end_object(
    Reading* r, const Node* node, int64_t first_order, int64_t first_span, int seen, bint is_ordered
) noexcept nogil:
    r.seen.absent += node.count - seen
    if r.span_count > first_span and not put_unknown(r, node.extra, first_span):
        return False
    r.span_count = first_span
    if not (is_ordered and is_first(<Shapes>r.shapes, node)) and not (<Shapes>r.shapes).note_order(
        r, node, r.order + first_order, r.order_size - first_order
    ):
        return False
    r.order_size = first_order
    return True


cdef const uint8_t* read_object(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef int64_t first_order = r.order_size
    cdef int64_t first_span = r.span_count
    cdef int64_t serial = r.serial + 1
    cdef const uint8_t* start
    cdef const uint8_t* span = NULL     # of the unknown members before p
    cdef const uint8_t* span_end = NULL
    cdef int32_t* following = r.next_member + node.member + node.object
    cdef int last = -1
    cdef int seen = 0
    cdef int32_t unknown = 0
    cdef int member = 0
    cdef bint is_ordered = True
    r.serial = serial
    if put_present(r, node.out, p) == NULL:
        return NULL
    start = p + 1
    p = pass_space(r, start)
    if p < r.end and p[0] == 0x7D:
        if p != start:
            r.seen.spaces |= SPACE_EMPTY
        r.seen.absent += node.count
        clear_nulls(r, node, serial)
        return p + 1
    note_open(r, start, p, False, depth)
    while True:
        start = p
        p = read_name(r, node, following[last + 1], p, &member)
        if p == NULL:
            return NULL
        p = pass_colon(r, p)
        if p == NULL:
            return NULL
        if member < 0:
            p = skip_value(r, p, depth)
            if p == NULL:
                return NULL
            if unknown == 0:
                span = start
            span_end = p
            unknown += 1
        elif r.member_in[node.member + member] == serial:
            r.loose = True
            p = skip_value(r, p, depth)
            if p == NULL:
                return NULL
        else:
            r.member_in[node.member + member] = serial
            if unknown:
                is_ordered = False
                if not push_order(r, -unknown) or not push_span(r, span, span_end):
                    return fail(r, STOPPED, p)
                unknown = 0
            if member < last:
                is_ordered = False
            following[last + 1] = member
            last = member
            seen += 1
            if not push_order(r, member):
                return fail(r, STOPPED, p)
            p = read_member(r, node, member, p, depth)
            if p == NULL:
                return NULL
        p = pass_space(r, p)
        if p < r.end and p[0] == 0x2C:
            p = pass_comma(r, p)
            continue
        if p >= r.end or p[0] != 0x7D:
            return fail_at(r, p)
        break
    if unknown and (not push_order(r, -unknown) or not push_span(r, span, span_end)):
        return fail(r, STOPPED, p)
    if seen < node.count:
        clear_nulls(r, node, serial)
    return p + 1 if end_object(r, node, first_order, first_span, seen, is_ordered) else fail(r, STOPPED, p)


cdef void clear_nulls(Reading* r, const Node* node, int64_t serial) noexcept nogil:
    # Members that are absent are not written as null.
    cdef int i
    if r.null_members[node.object] == 0:
        return
    for i in range(node.count):
        if r.null_member[node.member + i] and r.member_in[node.member + i] != serial:
            r.null_member[node.member + i] = 0
            r.null_members[node.object] -= 1


cdef const uint8_t* read_member(Reading* r, const Node* node, int member, const uint8_t* p, int depth) noexcept nogil:
    if p < r.end and p[0] == b"n":
        r.seen.nulls += 1
        if not r.null_member[node.member + member]:
            r.null_member[node.member + member] = 1
            r.null_members[node.object] += 1
        return skip_literal(r, p)
    return read_value(r, &r.nodes[node.first + member], p, depth)


cdef const uint8_t* read_items(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    # Reads the items of an array, or the entries of a map, from the bracket at p on.
    cdef const Node* item = &r.nodes[node.first]
    cdef uint8_t closing = p[0] + 2
    cdef const uint8_t* start = p + 1
    p = pass_space(r, start)
    if p < r.end and p[0] == closing:
        if p != start:
            r.seen.spaces |= SPACE_EMPTY
        return p + 1
    note_open(r, start, p, node.op == OP_ARRAY, depth)
    while True:
        r.counts[node.space] += 1
        r.memory -= r.row_bytes[node.space]
        if r.memory < 0:
            return fail(r, TOO_LARGE, p)
        if node.op == OP_MAP:
            if p >= r.end or p[0] != QUOTE:
                return fail_at(r, p)
            p = read_string(r, node.extra, p)
            if p == NULL:
                return NULL
            p = pass_colon(r, p)
            if p == NULL:
                return NULL
        p = skip_literal(r, p) if p < r.end and p[0] == b"n" else read_value(r, item, p, depth)
        if p == NULL:
            return NULL
        p = pass_space(r, p)
        if p < r.end and p[0] == 0x2C:
            p = pass_comma(r, p)
            continue
        return p + 1 if p < r.end and p[0] == closing else fail_at(r, p)


cdef const uint8_t* read_list(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    cdef Growing* column = &r.columns[node.out]
    cdef int64_t row = row_of(r, column)
    cdef int64_t first = r.counts[node.space]
    cdef int64_t count, replaced
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    p = read_items(r, node, p, depth)
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


cdef const uint8_t* read_value(Reading* r, const Node* node, const uint8_t* p, int depth) noexcept nogil:
    # Reads a value that isn't null. `depth` counts the objects and arrays around it.
    cdef const Node* choice = node
    cdef int op = node.op
    if p >= r.end:
        return fail(r, TRUNCATED, p)
    if op == OP_CHOICE:
        node = &r.nodes[choice.first]
        while node < &r.nodes[choice.first + choice.count] and not takes(node.op, p[0]):
            node += 1
        if node == &r.nodes[choice.first + choice.count]:
            return refuse(r, p, depth)
        if put_present(r, choice.out, p) == NULL:
            return NULL
        op = node.op
    elif not takes(op, p[0]):
        return refuse(r, p, depth)
    if op == OP_STRING:
        return read_string(r, node.out, p)
    if OP_INT <= op <= OP_DOUBLE:
        return read_number(r, node, p)
    if op == OP_BOOLEAN:
        return read_boolean(r, node, p)
    if op == OP_TEXT or op == OP_CUT:
        return read_text(r, node, p, depth)
    if depth >= MAX_DEPTH:
        return fail(r, TOO_DEEP, p)
    if op == OP_OBJECT:
        return read_object(r, node, p, depth + 1)
    return read_list(r, node, p, depth + 1)
