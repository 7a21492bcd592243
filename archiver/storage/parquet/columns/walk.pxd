# cython: language_level=3
"""The walk from a column of rows down to a leaf: levels of entries (Dremel's), and where the leaf's values are.

An entry is what a leaf has for a row, or for an element of lists above it: a value, or that there is none. An entry is
alive as long as nothing above it is null or empty.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, extend, put_zeros, release
from schema_mapping.kernel.arrow cimport ArrowArray

cdef enum:
    ALIVE = 0xFF            # the definition level of entries that are alive
    DEEPEST = 128           # Arrow's C interface ends at 64, and a map takes two steps

cdef enum:                  # what a step goes through
    IN_STRUCT = 0
    IN_LIST = 1
    IN_LARGE_LIST = 2
    AT_LEAF = 3


cdef struct Step:
    int kind
    bint is_nullable
    int child               # which child comes next


cdef struct Path:
    Step steps[DEEPEST]
    int count
    int defined             # the highest definition level
    int repeated            # the highest repetition level


cdef struct Walk:
    const ArrowArray* leaf
    int64_t entries
    int64_t alive
    bint has_levels         # else all entries are alive
    bint is_dense           # the living ones have values side by side, from `base` on
    int64_t base
    Bytes defined           # uint8_t[entries]
    Bytes repeated          # uint8_t[entries], if there are lists on the path
    Bytes places            # int64_t[alive], if they aren't dense: where values are in the leaf's buffers
    Bytes spare[3]


cdef inline void give_back_walk(Walk* walk) noexcept nogil:
    cdef int index
    release(&walk.defined)
    release(&walk.repeated)
    release(&walk.places)
    for index in range(3):
        release(&walk.spare[index])


cdef inline bint is_set(const uint8_t* bits, int64_t place) noexcept nogil:
    return bits[place >> 3] >> (place & 7) & 1


cdef inline int64_t offset_at(const ArrowArray* array, bint is_large, int64_t place) noexcept nogil:
    return (<const int64_t*>array.buffers[1])[place] if is_large else (<const int32_t*>array.buffers[1])[place]


cdef inline int _materialise(Walk* walk) except -1 nogil:
    if not walk.has_levels:
        walk.defined.size = 0
        memset(extend(&walk.defined, walk.entries), ALIVE, <size_t>walk.entries)
        walk.has_levels = True
    return 0


cdef inline int _list_places(Walk* walk) except -1 nogil:
    """Tell each place, where they aren't side by side from here on."""
    cdef int64_t* places
    cdef int64_t index
    if walk.is_dense:
        walk.places.size = 0
        places = <int64_t*>extend(&walk.places, walk.alive * 8)
        for index in range(walk.alive):
            places[index] = walk.base + index
        walk.is_dense = False
    return 0


cdef inline int64_t _valid_in(const uint8_t* valid, int64_t start, int64_t count) noexcept nogil:
    """How many of these bits are set."""
    cdef int64_t found = 0, place = start, end = start + count
    while place < end and place & 7:
        found += is_set(valid, place)
        place += 1
    while place + 8 <= end:
        if valid[place >> 3] == 0xFF:
            found += 8
        elif valid[place >> 3]:
            found += _valid_in_byte(valid[place >> 3])
        place += 8
    while place < end:
        found += is_set(valid, place)
        place += 1
    return found


cdef inline int _valid_in_byte(uint8_t bits) noexcept nogil:
    cdef int found = 0
    while bits:
        bits &= bits - 1
        found += 1
    return found


cdef inline int _drop_nulls(Walk* walk, const ArrowArray* array, int level) except -1 nogil:
    """End the entries that are null in this array. Their definition level is `level`."""
    cdef const uint8_t* valid = <const uint8_t*>array.buffers[0]
    cdef int64_t entry, place, seen = 0, kept = 0
    cdef int64_t* places
    cdef uint8_t* defined
    if array.null_count == 0 or valid == NULL or not walk.alive:
        return 0
    if walk.is_dense and _valid_in(valid, walk.base, walk.alive) == walk.alive:
        return 0
    _materialise(walk)
    _list_places(walk)
    places, defined = <int64_t*>walk.places.data, walk.defined.data
    for entry in range(walk.entries):
        if defined[entry] != ALIVE:
            continue
        place = places[seen]
        seen += 1
        if is_set(valid, place):
            places[kept] = place
            kept += 1
        else:
            defined[entry] = <uint8_t>level
    walk.alive, walk.places.size = kept, kept * 8
    if not kept or places[kept - 1] - places[0] == kept - 1:
        walk.is_dense = True
        walk.base = places[0] if kept else 0
    return 0


cdef inline int _refuse_nulls(const Walk* walk, const ArrowArray* array) except -1 nogil:
    """Raise NullNotAllowed where a living entry is null in this array, whose field allows none."""
    cdef const uint8_t* valid = <const uint8_t*>array.buffers[0]
    cdef int64_t index
    if array.null_count == 0 or valid == NULL:
        return 0
    for index in range(walk.alive):
        if not is_set(valid, walk.base + index if walk.is_dense else (<const int64_t*>walk.places.data)[index]):
            with gil:
                from archiver.storage.parquet.columns.plan import NullNotAllowed
                raise NullNotAllowed
    return 0


cdef inline int _move(Walk* walk, int64_t offset) noexcept nogil:
    """Go on to a child, which begins so far behind its parent's places."""
    cdef int64_t* places = <int64_t*>walk.places.data
    cdef int64_t index
    walk.base += offset
    if offset and not walk.is_dense:
        for index in range(walk.alive):
            places[index] += offset
    return 0


cdef inline void _swap(Bytes* one, Bytes* other) noexcept nogil:
    cdef Bytes held = one[0]
    one[0] = other[0]
    other[0] = held


cdef inline int _enter_rows(Walk* walk, const ArrowArray* array, bint is_large, int level) except -1 nogil:
    """Replace rows side by side, none of which is null, by the elements of their lists, as `_enter_lists` does."""
    cdef int64_t first = offset_at(array, is_large, walk.base), start = first, end = first, row, made = 0
    cdef int64_t most = walk.entries + offset_at(array, is_large, walk.base + walk.entries) - first
    cdef uint8_t* defined
    cdef uint8_t* repeated
    walk.defined.size = walk.repeated.size = 0
    defined, repeated = extend(&walk.defined, most), extend(&walk.repeated, most)
    memset(defined, ALIVE, <size_t>most)
    memset(repeated, 1, <size_t>most)
    for row in range(walk.entries):
        end = offset_at(array, is_large, walk.base + row + 1)
        repeated[made] = 0
        if end == start:
            defined[made] = <uint8_t>level
            made += 1
        made += end - start
        start = end
    walk.entries, walk.alive, walk.base, walk.has_levels = made, end - first, first, True
    walk.defined.size = walk.repeated.size = made
    return 0


cdef inline int _enter_lists(Walk* walk, const ArrowArray* array, bint is_large, int level, int depth) except -1 nogil:
    """Replace each living entry by the elements of its list. Empty lists end with the definition level `level`.

    Elements but the first get the repetition level `depth`.
    """
    cdef int64_t entry, place, start = 0, end, seen = 0, elements = 0, dead = walk.entries - walk.alive, next = -1
    cdef int64_t first = 0, made = 0, size
    cdef bint is_dense = True
    cdef int64_t* places
    cdef uint8_t* defined
    cdef uint8_t* repeated
    _materialise(walk)
    for seen in range(walk.alive):
        place = walk.base + seen if walk.is_dense else (<int64_t*>walk.places.data)[seen]
        start, end = offset_at(array, is_large, place), offset_at(array, is_large, place + 1)
        if start == end:
            dead += 1
            continue
        if next < 0:
            first = start
        elif start != next:
            is_dense = False
        next = end
        elements += end - start
    walk.spare[0].size = walk.spare[1].size = walk.spare[2].size = 0
    defined, repeated = extend(&walk.spare[0], elements + dead), extend(&walk.spare[1], elements + dead)
    places = <int64_t*>extend(&walk.spare[2], 0 if is_dense else elements * 8)
    memset(defined, ALIVE, <size_t>(elements + dead))
    memset(repeated, depth, <size_t>(elements + dead))
    seen = 0
    for entry in range(walk.entries):
        repeated[made] = walk.repeated.data[entry]
        if walk.defined.data[entry] != ALIVE:
            defined[made] = walk.defined.data[entry]
            made += 1
            continue
        place = walk.base + seen if walk.is_dense else (<int64_t*>walk.places.data)[seen]
        seen += 1
        start, size = offset_at(array, is_large, place), offset_at(array, is_large, place + 1)
        size -= start
        if not size:
            defined[made] = <uint8_t>level
            made += 1
            continue
        made += size
        if not is_dense:
            while size:
                places[0] = start
                places += 1
                start += 1
                size -= 1
    _swap(&walk.defined, &walk.spare[0])
    _swap(&walk.repeated, &walk.spare[1])
    _swap(&walk.places, &walk.spare[2])
    walk.entries, walk.alive, walk.is_dense, walk.base = elements + dead, elements, is_dense, first
    return 0


cdef inline int take_walk(
    Walk* walk, const Path* path, const ArrowArray* column, int64_t row, int64_t rows
) except -1 nogil:
    """Go from these rows of a column down to its leaf."""
    cdef const ArrowArray* array = column
    cdef int index, level = 0, depth = 0
    cdef const Step* step
    walk.entries = walk.alive = rows
    walk.has_levels, walk.is_dense, walk.base = False, True, row + column.offset
    if path.repeated:
        walk.repeated.size = 0
        put_zeros(&walk.repeated, rows)
    for index in range(path.count):
        step = &path.steps[index]
        if step.is_nullable:
            _drop_nulls(walk, array, level)
            level += 1
        else:
            _refuse_nulls(walk, array)
        if step.kind == AT_LEAF:
            break
        if step.kind != IN_STRUCT:
            depth += 1
            if depth == 1 and not walk.has_levels:
                _enter_rows(walk, array, step.kind == IN_LARGE_LIST, level)
            else:
                _enter_lists(walk, array, step.kind == IN_LARGE_LIST, level, depth)
            level += 1
        array = array.children[step.child]
        _move(walk, array.offset)
    walk.leaf = array
    return 0


cdef inline int64_t weight(
    const Path* path, const ArrowArray* column, int64_t row, int64_t rows, int width, bint is_large_text
) noexcept nogil:
    """About how many bytes the values of these rows take, and at least one each. `width` is 0 for texts."""
    cdef const ArrowArray* array = column
    cdef int64_t start = row + column.offset, end = start + rows
    cdef int index
    cdef bint is_large
    for index in range(path.count):
        if path.steps[index].kind == AT_LEAF or start == end:
            break
        if path.steps[index].kind != IN_STRUCT:
            is_large = path.steps[index].kind == IN_LARGE_LIST
            start, end = offset_at(array, is_large, start), offset_at(array, is_large, end)
        array = array.children[path.steps[index].child]
        start += array.offset
        end += array.offset
    if start == end:
        return 0
    if width:
        return (end - start) * width
    return offset_at(array, is_large_text, end) - offset_at(array, is_large_text, start) + 4 * (end - start)
