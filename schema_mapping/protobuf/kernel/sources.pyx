# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the buffers of rows to encode: walks an Arrow array and the tables together, in the same order."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_LIST, FIELD_NANOS, Field, NODE_CUT, NODE_ENTRY, NODE_NATIVE, NODE_WRAPPER, Node, OP_ASIDE, OP_GROUP, OP_MAP, OP_MESSAGE,
)

cdef enum:
    SPECIALS = 4            # __prefix__, __raw__, __err__, __form__
    KEPT_HEAD = 16          # bytes before a piece of kept memory
    MOST_TEXTS = 1 << 20    # bytes of a dictionary


cdef bint bind_root(Sources* sources, const ArrowArray* array) noexcept nogil:
    # Returns False if the array's children don't match the tables' fields, or dictionaries aren't sound.
    cdef int count = column_count(sources, &sources.tables_nodes[0])
    if array.n_children != count + SPECIALS + 1 or not is_sound(array):
        return False
    bind(sources, &sources.root, array, array.offset)
    if array.children[count].null_count != array.children[count].length:
        bind(sources, &sources.prefix, array.children[count], array.offset + array.children[count].offset)
    bind(sources, &sources.raw, array.children[count + 1], array.offset + array.children[count + 1].offset)
    bind(sources, &sources.form, array.children[count + 3], array.offset + array.children[count + 3].offset)
    return bind_message(sources, 0, array, array.offset)


cdef inline int column_count(Sources* sources, const Node* node) noexcept nogil:
    cdef int count = 0
    cdef int i
    for i in range(node.first_field, node.first_field + node.field_count):
        count += sources.tables_fields[i].op != OP_ASIDE
        count += sources.tables_fields[i].flags & FIELD_NANOS != 0
    return count


cdef inline void bind(Sources* sources, Source* source, const ArrowArray* array, int64_t shift) noexcept nogil:
    source.validity = <const uint8_t*>array.buffers[0]
    source.values = <const uint8_t*>array.buffers[1] if array.n_buffers > 1 else NULL
    source.offsets = <const int32_t*>source.values
    source.data = <const uint8_t*>array.buffers[2] if array.n_buffers > 2 else NULL
    source.entries = NULL
    source.shift = shift
    if array.dictionary != NULL and array.dictionary.length:
        source.entries = source.offsets
        bind_texts(sources, source, array.dictionary)


cdef void bind_texts(Sources* sources, Source* source, const ArrowArray* texts) noexcept nogil:
    # Copies the texts of a dictionary behind bytes that may be read, so that short ones are copied by whole words.
    cdef const int32_t* offsets = <const int32_t*>texts.buffers[1] + texts.offset
    cdef int64_t size = offsets[texts.length] - offsets[0]
    cdef int32_t* moved = <int32_t*>keep(sources, (texts.length + 2) * 4 + BEFORE_TEXTS + size)
    cdef uint8_t* data
    cdef int64_t i
    if moved == NULL:
        return
    moved[0] = <int32_t>texts.length
    moved += 1
    data = <uint8_t*>(moved + texts.length + 1)
    for i in range(texts.length + 1):
        moved[i] = offsets[i] - offsets[0] + BEFORE_TEXTS
    memset(data, 0, BEFORE_TEXTS)
    if size:
        memcpy(data + BEFORE_TEXTS, <const uint8_t*>texts.buffers[2] + offsets[0], size)
    source.offsets = moved
    source.data = data


cdef uint8_t* keep(Sources* sources, int64_t size) noexcept nogil:
    # Memory that lasts as long as the sources.
    cdef void** piece = <void**>malloc(KEPT_HEAD + size)
    if piece == NULL:
        sources.no_memory = True
        return NULL
    piece[0] = sources.kept
    sources.kept = piece
    return <uint8_t*>piece + KEPT_HEAD


cdef void free_kept(Sources* sources) noexcept nogil:
    cdef void* piece
    while sources.kept != NULL:
        piece = sources.kept
        sources.kept = (<void**>piece)[0]
        free(piece)


cdef bint is_sound(const ArrowArray* array) noexcept nogil:
    # Whether dictionaries, at any depth, aren't too large to be copied, have no nulls, and have all places that are
    # named. Readers of files don't look.
    cdef const uint32_t* places
    cdef uint32_t largest = 0
    cdef int64_t i
    for i in range(array.n_children):
        if not is_sound(array.children[i]):
            return False
    if array.dictionary == NULL or array.null_count == array.length:
        return True
    places = <const uint32_t*>array.buffers[1] + array.offset
    for i in range(array.length):
        largest = places[i] if places[i] > largest else largest
    return (
        largest < array.dictionary.length and bytes_of(array.dictionary) <= MOST_TEXTS
        and (array.dictionary.buffers[0] == NULL or array.dictionary.null_count == 0)
    )


cdef inline int64_t bytes_of(const ArrowArray* texts) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>texts.buffers[1] + texts.offset
    return offsets[texts.length] - offsets[0]


cdef bint bind_message(Sources* sources, int index, const ArrowArray* array, int64_t shift) noexcept nogil:
    # `shift` is added to a row of the space to find its value in `array`, a struct or a well-known type's one column.
    cdef const Node* node = &sources.tables_nodes[index]
    cdef const ArrowArray* last
    cdef int i
    cdef int child = 0
    cdef int count = 0 if node.flags & NODE_CUT else column_count(sources, node)
    if node.flags & NODE_NATIVE:
        bind(
            sources,
            &sources.fields[node.first_field] if node.flags & NODE_WRAPPER else &sources.unknown[index],
            array,
            shift,
        )
        if node.flags & NODE_WRAPPER:
            add_live(sources, index, node.first_field)
        return array.n_children == 0
    if array.n_children < count + (0 if node.flags & NODE_ENTRY else 1):
        return False
    for i in range(node.first_field, node.first_field + (0 if node.flags & NODE_CUT else node.field_count)):
        if sources.tables_fields[i].op == OP_ASIDE:
            add_live(sources, index, i)
            continue
        if not bind_field(sources, i, array.children[child], shift):
            return False
        if not is_empty(&sources.tables_fields[i], array.children[child]):
            add_live(sources, index, i)
        child += 1
        if sources.tables_fields[i].flags & FIELD_NANOS:
            if not bind_nanos(sources, i, array.children[child], shift):
                return False
            child += 1
    if not node.flags & NODE_ENTRY:
        last = array.children[array.n_children - 1]
        if last.null_count != last.length:
            bind(sources, &sources.unknown[index], last, shift + last.offset)
    return True


cdef inline const Node* times_of(const Sources* sources, const Field* field) noexcept nogil:
    # The node of a field's times.
    if field.op == OP_MAP:
        field = &sources.tables_fields[sources.tables_nodes[field.node].first_field + 1]
    return &sources.tables_nodes[field.node]


cdef bint bind_nanos(Sources* sources, int index, const ArrowArray* array, int64_t shift) noexcept nogil:
    # The nanoseconds of times are bound for the second field of their node, and the offsets of a list for the first.
    cdef const Field* field = &sources.tables_fields[index]
    cdef int seconds = times_of(sources, field).first_field
    cdef const ArrowArray* inner
    shift += array.offset
    if not field.flags & FIELD_LIST:
        bind(sources, &sources.fields[seconds + 1], array, shift)
        return True
    if array.n_children != 1:
        return False
    inner = array.children[0]
    bind(sources, &sources.fields[seconds], array, shift)
    bind(sources, &sources.elements[seconds + 1], inner, inner.offset)
    return True


cdef bint meet_nanos(Sources* sources, int index, int64_t row) noexcept nogil:
    # Finds the nanoseconds of the times in a row's list or map. Without a list of nanoseconds they are 0.
    # Returns False if there are more or fewer nanoseconds than times.
    cdef const Source* times = &sources.fields[index]
    cdef int seconds = times_of(sources, &sources.tables_fields[index]).first_field
    cdef const Source* lists = &sources.fields[seconds]
    cdef int64_t start
    sources.fields[seconds + 1] = sources.elements[seconds + 1]
    if is_null(lists, row):
        sources.fields[seconds + 1].values = NULL
        return True
    start = lists.offsets[row + lists.shift]
    sources.fields[seconds + 1].shift += start - times.offsets[row + times.shift]
    return (
        lists.offsets[row + lists.shift + 1] - start
        == times.offsets[row + times.shift + 1] - times.offsets[row + times.shift]
    )


cdef inline void add_live(Sources* sources, int index, int field) noexcept nogil:
    sources.live[sources.tables_nodes[index].first_field + sources.live_counts[index]] = field
    sources.live_counts[index] += 1


cdef inline bint is_empty(const Field* field, const ArrowArray* array) noexcept nogil:
    # Whether the column is empty in all rows: only lists without elements, or only nulls.
    cdef const int32_t* offsets
    if not field.flags & FIELD_LIST or array.length == 0:
        return array.null_count == array.length
    offsets = <const int32_t*>array.buffers[1] + array.offset
    return offsets[0] == offsets[array.length]


cdef bint bind_field(Sources* sources, int index, const ArrowArray* array, int64_t shift) noexcept nogil:
    cdef const Field* field = &sources.tables_fields[index]
    cdef const ArrowArray* inner
    shift += array.offset
    bind(sources, &sources.fields[index], array, shift)
    if field.flags & FIELD_LIST:
        if array.n_children != 1:
            return False
        inner = array.children[0]
        if field.node >= 0:
            return bind_message(sources, field.node, inner, inner.offset)
        bind(sources, &sources.elements[index], inner, inner.offset)
        return True
    if field.op == OP_MESSAGE or field.op == OP_GROUP:
        return bind_message(sources, field.node, array, shift)
    return True
