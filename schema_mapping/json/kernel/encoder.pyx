# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes rows to values: `__raw__` if it is set, else `__prefix__` and the columns in the form that `__form__` names.

Raises rather than write what isn't JSON: for a form that isn't known, and for infinite numbers.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from schema_mapping.json.kernel.forms cimport Forms
from schema_mapping.json.kernel.numbers cimport LONGEST_DOUBLE, write_double
from schema_mapping.json.kernel.reading cimport (
    ESCAPE_DELETE, ESCAPE_EQUALS, ESCAPE_HTML, ESCAPE_LONG, ESCAPE_QUOTES, ESCAPE_SINGLE, ESCAPE_SLASH, ESCAPE_UPPER,
    SPACE_BEFORE, SPACE_COLON, SPACE_COMMA, SPACE_EMPTY, SPACE_FLAT, SPACE_INLINE, SPACE_NEWLINE, SPACE_TAB,
)
from schema_mapping.json.kernel.spans cimport copy_span, member_end, special_marks
from schema_mapping.json.kernel.tables cimport (
    OP_ARRAY, OP_BOOLEAN, OP_CHOICE, OP_CUT, OP_DOUBLE, OP_INT, OP_LONG, OP_MAP, OP_OBJECT, OP_STRING, OP_TEXT, Node,
    Tables, presence,
)
from schema_mapping.json.kernel.writing cimport (
    NO_MEMORY, NO_PROBLEM, NOT_A_FORM, OTHER_VALUE, Source, Unknown, Writing, is_escaped, is_inline, is_null, stop,
    write_colon,
)
from schema_mapping.kernel.blocks cimport Block, buffer_of, enlarged, new_block
from schema_mapping.kernel.octets cimport load32, load64, utf8_step, write_decimal

cdef enum:
    ROOM = LONGEST_DOUBLE + 64
    WIDEST = 12         # bytes that one byte of a text may take, and a pair of escapes

cdef bint grow(Writing* w, int64_t more) noexcept nogil:
    with gil:
        return grow_block(w, more)


cdef bint grow_block(Writing* w, int64_t more) noexcept:
    cdef list owner = <list>w.owner
    cdef Block block = owner[0]
    cdef int64_t written = w.p - w.start
    try:
        block = enlarged(block, max(2 * block.capacity, written + more))
    except MemoryError:
        w.problem = NO_MEMORY
        return False
    owner[0] = block
    w.start = block.data
    w.p = block.data + written
    w.end = block.data + block.capacity
    return True


cdef inline bint has_room(Writing* w, int64_t more) noexcept nogil:
    return w.end - w.p >= more or grow(w, more)


cdef bint write_span(Writing* w, const uint8_t* start, int64_t size) noexcept nogil:
    if not has_room(w, size + ROOM):
        return False
    copy_span(w.p, start, size)
    w.p += size
    return True


cdef inline bint write_whole(Writing* w, const Source* source, int64_t i) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    return write_span(w, source.data + offsets[0], offsets[1] - offsets[0])


cdef void prepare(Writing* w, Forms forms) noexcept nogil:
    # Takes over the form of the next rows.
    cdef int i
    w.escapes, w.spaces, w.indent, w.style = forms.escapes, forms.spaces, forms.indent, forms.style
    w.entries, w.order_start, w.order_size = forms.entries, forms.order_start, forms.order_size
    w.is_null, w.nulls = forms.is_null, forms.nulls
    w.is_compact = w.indent == 0 and not w.spaces & ~<uint32_t>(SPACE_NEWLINE | SPACE_EMPTY)
    memset(w.special, 0, 128)
    memset(w.special, 1, 32)
    w.special[9], w.special[10], w.special[13] = b"t", b"n", b"r"
    if not w.escapes & ESCAPE_LONG:
        w.special[8], w.special[12] = b"b", b"f"
    w.special[0x22], w.special[0x5C] = 0x22, 0x5C
    if w.escapes & ESCAPE_SLASH:
        w.special[0x2F] = 0x2F
    if w.escapes & ESCAPE_HTML:
        w.special[0x3C] = w.special[0x3E] = w.special[0x26] = 1
    if w.escapes & ESCAPE_QUOTES:
        w.special[0x22] = w.special[0x27] = w.special[0x2B] = w.special[0x60] = 1
    if w.escapes & ESCAPE_DELETE:
        w.special[0x7F] = 1
    if w.escapes & ESCAPE_SINGLE:
        w.special[0x27] = 1
    if w.escapes & ESCAPE_EQUALS:
        w.special[0x3D] = 1
    w.is_usual = not w.escapes & (
        ESCAPE_SLASH | ESCAPE_HTML | ESCAPE_QUOTES | ESCAPE_DELETE | ESCAPE_SINGLE | ESCAPE_EQUALS
    )


cdef void write_unit(Writing* w, uint32_t code) noexcept nogil:
    cdef const char* digits = b"0123456789ABCDEF" if w.escapes & ESCAPE_UPPER else b"0123456789abcdef"
    w.p[0], w.p[1] = 0x5C, b"u"
    w.p[2], w.p[3] = <uint8_t>digits[code >> 12 & 15], <uint8_t>digits[code >> 8 & 15]
    w.p[4], w.p[5] = <uint8_t>digits[code >> 4 & 15], <uint8_t>digits[code & 15]
    w.p += 6


cdef const uint8_t* write_beyond(Writing* w, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # Writes a character that isn't ASCII, and returns its end.
    cdef int step = utf8_step(p, end)
    cdef uint32_t code
    cdef int i
    if step <= 1:
        w.p[0] = p[0]
        w.p += 1
        return p + 1
    code = p[0] & (0x7F >> step)
    for i in range(1, step):
        code = code << 6 | p[i] & 0x3F
    if is_escaped(w, code):
        if code >= 0x10000:
            write_unit(w, 0xD800 + ((code - 0x10000) >> 10))
            write_unit(w, 0xDC00 + (code & 0x3FF))
        else:
            write_unit(w, code)
        return p + step
    memcpy(w.p, p, step)
    w.p += step
    return p + step


cdef bint write_text(Writing* w, const uint8_t* p, int64_t size) noexcept nogil:
    cdef const uint8_t* end = p + size
    cdef const uint8_t* plain
    if not has_room(w, size + ROOM):
        return False
    w.p[0] = 0x22
    w.p += 1
    while p < end:
        while w.is_usual and end - p >= 8 and not special_marks(load64(p)):
            memcpy(w.p, p, 8)
            w.p += 8
            p += 8
        plain = p
        while p < end and p[0] < 0x80 and not w.special[p[0]]:
            p += 1
        copy_span(w.p, plain, p - plain)
        w.p += p - plain
        if p == end:
            break
        # Each byte that is left may need a number, and there must be room for the rest as it is.
        if w.end - w.p < (end - p) + ROOM and not grow(w, 2 * (end - p) + ROOM):
            return False
        if p[0] >= 0x80:
            p = write_beyond(w, p, end)
        elif w.special[p[0]] == 1:
            write_unit(w, p[0])
            p += 1
        else:
            w.p[0], w.p[1] = 0x5C, w.special[p[0]]
            w.p += 2
            p += 1
    w.p[0] = 0x22
    w.p += 1
    return True


cdef bint write_string(Writing* w, const Source* source, int64_t i) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    return write_text(w, source.data + offsets[0], offsets[1] - offsets[0])


cdef bint write_line(Writing* w) noexcept nogil:
    # Begins an indented line.
    cdef int64_t size = <int64_t>w.depth * w.indent
    if not has_room(w, size + ROOM):
        return False
    w.p[0] = 10
    memset(w.p + 1, 9 if w.spaces & SPACE_TAB else 32, size)
    w.p += 1 + size
    return True


cdef bint begin(Writing* w, uint8_t bracket, bint is_first) noexcept nogil:
    # Writes what comes before a member or item: the bracket or a comma, and space.
    if not has_room(w, ROOM):
        return False
    w.p[0] = bracket if is_first else 0x2C
    w.p += 1
    if is_first and not is_inline(w, bracket):
        w.depth += 1
    if w.indent and not is_inline(w, bracket):
        return write_line(w)
    if w.spaces & (SPACE_INLINE if is_first else SPACE_COMMA | SPACE_INLINE):
        w.p[0] = 32
        w.p += 1
    return True


cdef bint finish(Writing* w, uint8_t bracket, bint is_empty) noexcept nogil:
    # Writes the closing bracket.
    if not has_room(w, ROOM):
        return False
    if is_empty:
        w.p[0] = bracket
        w.p += 1
        if w.spaces & SPACE_EMPTY:
            w.p[0] = 32
            w.p += 1
    elif is_inline(w, bracket):
        if w.spaces & SPACE_INLINE:
            w.p[0] = 32
            w.p += 1
    else:
        w.depth -= 1
        if w.indent and not write_line(w):
            return False
    w.p[0] = bracket + 2
    w.p += 1
    return True


cdef bint write_name(Writing* w, uint64_t slot) noexcept nogil:
    cdef int64_t size = <uint32_t>slot >> 1
    cdef const uint8_t* text = w.texts + (slot >> 32)
    if not slot & 1:
        if not write_text(w, text + 1, size):
            return False
    elif not write_span(w, text, size + 2):
        return False
    if not has_room(w, ROOM):
        return False
    write_colon(w)
    return True


cdef bint write_null(Writing* w) noexcept nogil:
    return write_span(w, b"null", 4)


cdef bint write_unknown(Writing* w, Unknown* unknown, int32_t count, bint is_first) noexcept nogil:
    # Writes unknown members: at most `count`, as they are.
    cdef const uint8_t* start = unknown.p
    if not begin(w, 0x7B, is_first):
        return False
    while unknown.p < unknown.end and count > 0:
        unknown.p = member_end(unknown.p, unknown.end)
        count -= 1
        if count and unknown.p < unknown.end:
            unknown.p += 1
    if not write_span(w, start, unknown.p - start):
        return False
    if unknown.p < unknown.end:
        unknown.p += 1
    return True


cdef bint write_object(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef int32_t start = w.order_start[node.object]
    cdef int32_t count = node.count if start < 0 else w.order_size[node.object]
    cdef const Node* child
    cdef const Source* source = &w.sources[node.extra]
    cdef const int32_t* offsets
    cdef Unknown unknown
    cdef bint is_first = True
    cdef bint absent
    cdef uint64_t slot
    cdef int64_t size
    cdef int32_t member
    cdef int32_t k
    unknown.p = unknown.end = NULL
    if not is_null(source, i):
        offsets = <const int32_t*>source.values + i + source.shift
        if offsets[1] - offsets[0] >= 2:
            unknown.p, unknown.end = source.data + offsets[0] + 1, source.data + offsets[1] - 1
    for k in range(count):
        member = k if start < 0 else w.entries[start + k]
        if member < 0:
            if unknown.p < unknown.end:
                if not write_unknown(w, &unknown, -member, is_first):
                    return False
                is_first = False
            continue
        child = &w.nodes[node.first + member]
        absent = is_null(&w.sources[presence(child)], i)
        if absent and w.nulls == w.is_null[node.member + member]:
            continue
        slot = w.names[node.member + member]
        size = (<uint32_t>slot >> 1) + 2
        if slot & 1 and w.is_compact and w.end - w.p >= size + ROOM:
            w.p[0] = 0x7B if is_first else 0x2C
            copy_span(w.p + 1, w.texts + (slot >> 32), size)
            w.p[size + 1] = 0x3A
            w.p += size + 2
            w.depth += is_first
        elif not begin(w, 0x7B, is_first) or not write_name(w, slot):
            return False
        is_first = False
        if not (write_null(w) if absent else write_value(w, child, i)):
            return False
    if unknown.p < unknown.end:
        if not write_unknown(w, &unknown, 1 << 30, is_first):
            return False
        is_first = False
    return finish(w, 0x7B, is_first)


cdef bint write_list(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef const Source* source = &w.sources[node.out]
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    cdef const Node* item = &w.nodes[node.first]
    cdef uint8_t bracket = 0x7B if node.op == OP_MAP else 0x5B
    cdef int64_t k
    for k in range(offsets[0], offsets[1]):
        if not begin(w, bracket, k == offsets[0]):
            return False
        if node.op == OP_MAP:
            if not write_string(w, &w.sources[node.extra], k) or not has_room(w, ROOM):
                return False
            write_colon(w)
        if not (write_null(w) if is_null(&w.sources[presence(item)], k) else write_value(w, item, k)):
            return False
    return finish(w, bracket, offsets[0] == offsets[1])


cdef bint write_scalar(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef const Source* source = &w.sources[node.out]
    cdef int64_t at = i + source.shift
    cdef double wide
    cdef int size
    if not has_room(w, ROOM):
        return False
    if node.op == OP_LONG:
        w.p += write_decimal(w.p, <int64_t>load64(source.values + 8 * at))
    elif node.op == OP_INT:
        w.p += write_decimal(w.p, <int32_t>load32(source.values + 4 * at))
    elif node.op == OP_DOUBLE:
        memcpy(&wide, source.values + 8 * at, 8)
        size = write_double(w.p, wide, w.style)
        if size == 0:
            return stop(w, OTHER_VALUE, node.out)
        w.p += size
    elif source.values[at >> 3] >> (at & 7) & 1:
        return write_span(w, b"true", 4)
    else:
        return write_span(w, b"false", 5)
    return True


cdef bint write_value(Writing* w, const Node* node, int64_t i) noexcept nogil:
    # Writes a value that isn't null.
    cdef int op = node.op
    cdef int k
    if op == OP_STRING:
        return write_string(w, &w.sources[node.out], i)
    if op == OP_TEXT or op == OP_CUT:
        return write_whole(w, &w.sources[node.out], i)
    if op == OP_OBJECT:
        return write_object(w, node, i)
    if op == OP_ARRAY or op == OP_MAP:
        return write_list(w, node, i)
    if op == OP_CHOICE:
        for k in range(node.first, node.first + node.count):
            if not is_null(&w.sources[presence(&w.nodes[k])], i):
                return write_value(w, &w.nodes[k], i)
        return write_null(w)
    return write_scalar(w, node, i)


cdef bint write_row(Writing* w, Tables tables, Forms forms, int64_t i) noexcept nogil:
    cdef const Source* raw = &w.sources[tables.raw_column]
    cdef const Source* prefix = &w.sources[tables.prefix_column]
    cdef const Source* form = &w.sources[tables.form_column]
    cdef const Node* root = &w.nodes[tables.root]
    cdef const int32_t* offsets
    cdef int64_t size = 0
    cdef const uint8_t* text = NULL
    if not is_null(raw, i):
        return write_whole(w, raw, i)
    if not is_null(prefix, i) and not write_whole(w, prefix, i):
        return False
    if not is_null(form, i):
        offsets = <const int32_t*>form.values + i + form.shift
        text, size = form.data + offsets[0], offsets[1] - offsets[0]
    if size != forms.text_size or (size and memcmp(text, forms.text, size) != 0):
        if not forms.read(text, size):
            return stop(w, NOT_A_FORM, tables.form_column)
        prepare(w, forms)
    w.depth = 0
    if root.out >= 0 and is_null(&w.sources[presence(root)], i):
        if not write_null(w):
            return False
    elif not write_value(w, root, i):
        return False
    if w.spaces & SPACE_NEWLINE:
        return write_span(w, b"\n", 1)
    return True


PROBLEMS = {NOT_A_FORM: "form", OTHER_VALUE: "value"}


def encode_rows(Tables tables not None, const uint64_t[:, ::1] sources, int64_t count, *, int64_t guess):
    """Encodes `count` rows. For each column, `sources` has the addresses of validity, values and data, and the shift.

    Returns the bytes, and their 64-bit offsets. `guess` is the memory to start with. Raises ValueError, with the row,
    the column's number and one of PROBLEMS, if a row can't have been decoded by these tables; and MemoryError.
    """
    cdef Writing w
    cdef Block values = new_block(guess + ROOM)
    cdef Block starts = new_block((count + 1) * 8)
    cdef list owner = [values]
    cdef Forms forms = Forms(tables)
    cdef int64_t* offsets = <int64_t*>starts.data
    cdef int64_t done = 0
    cdef int k
    if sources.shape[0] != tables.column_count or sources.shape[1] != 4:
        raise TypeError("there must be four numbers for each column")
    w.nodes, w.names, w.texts = tables.nodes, tables.names, tables.texts
    w.start = w.p = values.data
    w.end = values.data + values.capacity
    w.owner = <void*>owner
    w.problem, w.column = NO_PROBLEM, -1
    prepare(&w, forms)
    w.sources = <Source*>calloc(tables.column_count, sizeof(Source))
    if w.sources == NULL:
        raise MemoryError
    try:
        for k in range(tables.column_count):
            w.sources[k].validity = <const uint8_t*>sources[k, 0]
            w.sources[k].values = <const uint8_t*>sources[k, 1]
            w.sources[k].data = <const uint8_t*>sources[k, 2]
            w.sources[k].shift = <int64_t>sources[k, 3]
        with nogil:
            while done < count:
                offsets[done] = w.p - w.start
                if not is_null(&w.sources[tables.row_column], done) and not write_row(&w, tables, forms, done):
                    break
                done += 1
            offsets[done] = w.p - w.start
        if done < count:
            if w.problem == NO_MEMORY:
                raise MemoryError
            raise ValueError(done, w.column, PROBLEMS[w.problem])
        return buffer_of(owner[0], 0, w.p - w.start), buffer_of(starts, 0, (count + 1) * 8)
    finally:
        free(w.sources)
