# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes rows to values: `__raw__` if it is set, else `__prefix__` and the columns by the writer that `__form__` names.

Raises rather than write bytes that the writer can't have written: if a column is null whose type isn't nullable, if it
has a value that the type hasn't, or if a form isn't known.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove

from schema_mapping.avro.kernel.scalars cimport (
    int128, read_uuid, write_decimal_bytes, write_decimal_fixed, write_uuid,
)
from schema_mapping.avro.kernel.tables cimport (
    OP_ARRAY, OP_BOOLEAN, OP_BYTES, OP_CUT, OP_DATE, OP_DECIMAL_BYTES, OP_DECIMAL_FIXED, OP_DOUBLE, OP_ENUM, OP_FIXED,
    OP_FLOAT, OP_FLOAT_AS_DOUBLE, OP_INT, OP_INT_AS_LONG, OP_LONG, OP_LONG_FIXED, OP_MAP, OP_NULL, OP_NULLABLE,
    OP_RECORD, OP_STRING, OP_TIME_MICROS, OP_TIME_MILLIS, OP_TIMESTAMP_MICROS, OP_TIMESTAMP_MILLIS, OP_UNION,
    OP_UUID_TEXT, Node, Tables,
)
from schema_mapping.avro.kernel.varints cimport write_varint, zigzag
from schema_mapping.kernel.blocks cimport Block, buffer_of, enlarged, new_block
from schema_mapping.kernel.octets cimport hash_text, load32, load64

cdef enum:
    ROOM = 64           # more bytes than any number, uuid or decimal takes
    BLOCK = 100         # items of a sized block
    LONGEST = 10        # bytes of a varint

cdef enum Problem:
    NO_PROBLEM = 0
    NO_MEMORY = 1
    IS_NULL = 2
    NOT_A_SYMBOL = 3
    NOT_A_FORM = 4
    NO_BRANCH = 5
    OTHER_VALUE = 6

# Row i of a row space is value i + shift of the buffers.
cdef struct Source:
    const uint8_t* validity
    const uint8_t* values
    const uint8_t* data
    int64_t shift

cdef struct Writing:
    const Node* nodes
    const uint64_t* symbols
    const int32_t* lookup
    const uint8_t* texts
    Source* sources
    uint8_t* p
    uint8_t* start
    uint8_t* end
    void* owner         # a list with one item, the block
    bint is_sized
    int problem
    int column          # that has the problem


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


cdef inline bint is_null(const Source* source, int64_t i) noexcept nogil:
    i += source.shift
    return source.validity != NULL and not (source.validity[i >> 3] >> (i & 7)) & 1


cdef inline bint stop(Writing* w, int problem, int column) noexcept nogil:
    w.problem = problem
    w.column = column
    return False


cdef inline bint write_number(Writing* w, int64_t value) noexcept nogil:
    if not has_room(w, ROOM):
        return False
    w.p = write_varint(w.p, zigzag(value))
    return True


cdef inline bint write_span(Writing* w, const uint8_t* start, int64_t size) noexcept nogil:
    if not has_room(w, size + ROOM):
        return False
    if size:
        memcpy(w.p, start, size)
    w.p += size
    return True


cdef inline bint write_text(Writing* w, const Source* source, int64_t i, bint has_length) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    cdef int64_t size = offsets[1] - offsets[0]
    if not has_room(w, size + ROOM):
        return False
    if has_length:
        w.p = write_varint(w.p, zigzag(size))
    if size:
        memcpy(w.p, source.data + offsets[0], size)
    w.p += size
    return True


cdef bint write_enum(Writing* w, const Node* node, const Source* source, int64_t i) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    cdef const uint8_t* text = source.data + offsets[0]
    cdef int64_t size = offsets[1] - offsets[0]
    cdef uint32_t at = hash_text(text, size, 0) & <uint32_t>node.mask
    cdef uint64_t slot
    cdef int32_t number
    while True:
        number = w.lookup[node.extra + at]
        if number == 0:
            return stop(w, NOT_A_SYMBOL, node.out)
        slot = w.symbols[number - 1]
        if <uint32_t>slot == size and memcmp(w.texts + (slot >> 32), text, size) == 0:
            return write_number(w, number - 1 - node.first)
        at = (at + 1) & <uint32_t>node.mask


cdef bint write_decimal(Writing* w, const Node* node, const uint8_t* value) noexcept nogil:
    cdef int128 number
    cdef int size
    memcpy(&number, value, 16)
    if not has_room(w, node.space + ROOM):
        return False
    if node.op == OP_DECIMAL_FIXED:
        if node.space < 16 and number >> (8 * node.space - 1) != (-1 if number < 0 else 0):
            return stop(w, OTHER_VALUE, node.out)
        write_decimal_fixed(w.p, number, node.space)
        w.p += node.space
    else:
        size = write_decimal_bytes(w.p + 1, number)
        w.p[0] = <uint8_t>(2 * size)
        w.p += 1 + size
    return True


cdef bint write_scalar(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef const Source* source = &w.sources[node.out]
    cdef int64_t at = i + source.shift
    cdef int op = node.op
    cdef int64_t number
    cdef float narrow
    cdef double wide
    if is_null(source, i):
        return stop(w, IS_NULL, node.out)
    if op == OP_STRING or op == OP_BYTES:
        return write_text(w, source, i, True)
    if not has_room(w, ROOM):
        return False
    if op == OP_INT or op == OP_DATE:
        w.p = write_varint(w.p, zigzag(<int32_t>load32(source.values + 4 * at)))
    elif op == OP_LONG or op == OP_TIME_MICROS or op == OP_TIMESTAMP_MICROS:
        w.p = write_varint(w.p, zigzag(<int64_t>load64(source.values + 8 * at)))
    elif op == OP_INT_AS_LONG:
        number = <int64_t>load64(source.values + 8 * at)
        if number != <int32_t>number:
            return stop(w, OTHER_VALUE, node.out)
        w.p = write_varint(w.p, zigzag(number))
    elif op == OP_TIME_MILLIS or op == OP_TIMESTAMP_MILLIS:
        number = <int64_t>load64(source.values + 8 * at)
        if number % 1000:
            return stop(w, OTHER_VALUE, node.out)
        w.p = write_varint(w.p, zigzag(number // 1000))
    elif op == OP_DOUBLE:
        memcpy(w.p, source.values + 8 * at, 8)
        w.p += 8
    elif op == OP_FLOAT:
        memcpy(w.p, source.values + 4 * at, 4)
        w.p += 4
    elif op == OP_FLOAT_AS_DOUBLE:
        memcpy(&wide, source.values + 8 * at, 8)
        narrow = <float>wide
        if narrow != wide and narrow == narrow:
            return stop(w, OTHER_VALUE, node.out)
        memcpy(w.p, &narrow, 4)
        w.p += 4
    elif op == OP_BOOLEAN:
        w.p[0] = source.values[at >> 3] >> (at & 7) & 1
        w.p += 1
    elif op == OP_ENUM:
        return write_enum(w, node, source, i)
    elif op == OP_FIXED:
        return write_span(w, source.values + at * node.space, node.space)
    elif op == OP_LONG_FIXED:
        if (<const int32_t*>source.values)[at + 1] - (<const int32_t*>source.values)[at] != node.space:
            return stop(w, OTHER_VALUE, node.out)
        return write_text(w, source, i, False)
    elif op == OP_UUID_TEXT:
        w.p[0] = 72
        write_uuid(w.p + 1, source.values + 16 * at)
        w.p += 37
    else:
        return write_decimal(w, node, source.values + 16 * at)
    return True


cdef inline int present_column(const Node* node) noexcept nogil:
    return node.space if node.op == OP_CUT else node.out


cdef bint write_union(Writing* w, const Node* node, int64_t i) noexcept nogil:
    # The branch whose column has a value; else the null branch, or one without a column.
    cdef const Node* branch
    cdef int chosen = -1
    cdef int k, column
    for k in range(node.count):
        branch = &w.nodes[node.first + k]
        column = -1 if branch.op == OP_NULL else present_column(branch)
        if branch.op == OP_NULL:
            chosen = k
        elif column >= 0 and not is_null(&w.sources[column], i):
            return write_number(w, k) and write_value(w, branch, i)
    return stop(w, NO_BRANCH, node.out) if chosen < 0 else write_number(w, chosen)


cdef bint write_items(Writing* w, const Node* node, int64_t first, int64_t last) noexcept nogil:
    cdef const Node* item = &w.nodes[node.first]
    cdef int64_t i
    for i in range(first, last):
        if node.op == OP_MAP:
            if is_null(&w.sources[node.extra], i):
                return stop(w, IS_NULL, node.extra)
            if not write_text(w, &w.sources[node.extra], i, True):
                return False
        if not write_value(w, item, i):
            return False
    return True


cdef bint write_sized(Writing* w, const Node* node, int64_t first, int64_t last) noexcept nogil:
    # Writes blocks with a negative count and their size; each is written after room for its size, then moved.
    cdef uint8_t size_text[LONGEST]
    cdef int64_t before, size, width
    cdef int64_t end
    while first < last:
        end = min(last, first + BLOCK)
        if not write_number(w, first - end):
            return False
        before = w.p - w.start
        w.p += LONGEST
        if not write_items(w, node, first, end):
            return False
        size = w.p - w.start - before - LONGEST
        width = write_varint(size_text, zigzag(size)) - size_text
        memcpy(w.start + before, size_text, width)
        memmove(w.start + before + width, w.start + before + LONGEST, size)
        w.p -= LONGEST - width
        first = end
    return write_number(w, 0)


cdef bint write_list(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef const Source* source = &w.sources[node.out]
    cdef const int32_t* offsets = <const int32_t*>source.values + i + source.shift
    if is_null(source, i):
        return stop(w, IS_NULL, node.out)
    if offsets[0] == offsets[1]:
        return write_number(w, 0)
    if w.is_sized:
        return write_sized(w, node, offsets[0], offsets[1])
    return (
        write_number(w, offsets[1] - offsets[0])
        and write_items(w, node, offsets[0], offsets[1])
        and write_number(w, 0)
    )


cdef bint write_value(Writing* w, const Node* node, int64_t i) noexcept nogil:
    cdef int op = node.op
    cdef int k
    if op == OP_NULL:
        return True
    if op == OP_RECORD:
        if node.out >= 0 and is_null(&w.sources[node.out], i):
            return stop(w, IS_NULL, node.out)
        for k in range(node.count):
            if not write_value(w, &w.nodes[node.first + k], i):
                return False
        return True
    if op == OP_NULLABLE:
        if node.out < 0 or is_null(&w.sources[node.out], i):
            return write_number(w, node.count)
        return write_number(w, 1 - node.count) and write_value(w, &w.nodes[node.first], i)
    if op == OP_UNION:
        return write_union(w, node, i)
    if node.out < 0:
        return stop(w, NO_BRANCH, -1)
    if op == OP_ARRAY or op == OP_MAP:
        return write_list(w, node, i)
    if op == OP_CUT:
        if is_null(&w.sources[node.out], i):
            return stop(w, IS_NULL, node.out)
        return write_text(w, &w.sources[node.out], i, False)
    return write_scalar(w, node, i)


cdef int form_at(Writing* w, Tables tables, int64_t i, int last) noexcept nogil:
    # The number of the row's form; -1 if it isn't known. `last` is the form of the row before.
    cdef const Source* source = &w.sources[tables.form_column]
    cdef const int32_t* offsets
    cdef const uint8_t* text
    cdef int64_t size
    cdef int k
    if is_null(source, i):
        return 0
    offsets = <const int32_t*>source.values + i + source.shift
    text = source.data + offsets[0]
    size = offsets[1] - offsets[0]
    if is_form(tables, last, text, size):
        return last
    for k in range(1, 2 * tables.writer_count):
        if is_form(tables, k, text, size):
            return k
    return -1


cdef inline bint is_form(Tables tables, int form, const uint8_t* text, int64_t size) noexcept nogil:
    cdef uint64_t slot = tables.forms[form]
    return size > 0 and <uint32_t>slot == size and memcmp(tables.texts + (slot >> 32), text, size) == 0


cdef int64_t write_rows(Writing* w, Tables tables, int64_t count, int64_t* starts) noexcept nogil:
    # Returns the first row that couldn't be written, or the number of rows.
    cdef const Source* raw = &w.sources[tables.raw_column]
    cdef const Source* prefix = &w.sources[tables.prefix_column]
    cdef const Source* rows = &w.sources[tables.row_column]
    cdef int64_t i
    cdef int form = 0
    for i in range(count):
        starts[i] = w.p - w.start
        if is_null(rows, i):
            continue
        if not is_null(raw, i):
            if not write_text(w, raw, i, False):
                return i
            continue
        if not is_null(prefix, i) and not write_text(w, prefix, i, False):
            return i
        form = form_at(w, tables, i, form)
        if form < 0:
            stop(w, NOT_A_FORM, tables.form_column)
            return i
        w.is_sized = form & 1
        if not write_value(w, &w.nodes[tables.programs[form >> 1]], i):
            return i
    starts[count] = w.p - w.start
    return count


PROBLEMS = {
    IS_NULL: "null",
    NOT_A_SYMBOL: "enum",
    NOT_A_FORM: "form",
    NO_BRANCH: "branch",
    OTHER_VALUE: "value",
}


def encode_rows(Tables tables not None, const uint64_t[:, ::1] sources, int64_t count, *, int64_t guess):
    """Encodes `count` rows. For each column, `sources` has the addresses of validity, values and data, and the shift.

    Returns the bytes, and their 64-bit offsets. `guess` is the memory to start with. Raises ValueError, with the row,
    the column's number and one of PROBLEMS, if a row can't have been decoded by these tables; and MemoryError.
    """
    cdef Writing w
    cdef Block values = new_block(guess + ROOM)
    cdef Block starts = new_block((count + 1) * 8)
    cdef list owner = [values]
    cdef int64_t done
    cdef int k
    if sources.shape[0] != tables.column_count or sources.shape[1] != 4:
        raise TypeError("there must be four numbers for each column")
    w.nodes = tables.nodes
    w.symbols = tables.symbols
    w.lookup = tables.lookup
    w.texts = tables.texts
    w.start = w.p = values.data
    w.end = values.data + values.capacity
    w.owner = <void*>owner
    w.problem = NO_PROBLEM
    w.column = -1
    w.is_sized = False
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
            done = write_rows(&w, tables, count, <int64_t*>starts.data)
        if done < count:
            if w.problem == NO_MEMORY:
                raise MemoryError
            raise ValueError(done, w.column, PROBLEMS[w.problem])
        return buffer_of(owner[0], 0, w.p - w.start), buffer_of(starts, 0, (count + 1) * 8)
    finally:
        free(w.sources)
