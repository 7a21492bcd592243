# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Says of which column chunks a footer speaks without contradicting itself, in one pass over its bytes.

pyarrow's `RowGroupMetaData.column` and what it gives end the process where a chunk can't be one of its column: C++
throws, and nothing there catches it. Fields are found by their ids and kinds in parquet.thrift, as Arrow finds them.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from archiver.storage.parquet.compact_bytes cimport (
    BINARY, DEEPEST, I32, I64, LIST, STOP, STRUCT, Reader, field, integer, list_size, pass_bytes, pass_value,
    short_integer, varint,
)

from archiver.storage.parquet.compact_thrift import ThriftError

cdef enum:
    LEVELS = 64             # no schema is as deep: Arrow's C interface ends there

cdef enum:
    BOOLEAN = 0
    BYTE_ARRAY = 6
    FIXED = 7
    TYPES = 8

cdef int64_t BOUND_BYTES[TYPES]
BOUND_BYTES[:] = [1, 4, 8, 12, 4, 8, -1, -1]    # by the number of the type; -1 is any size, or one that the schema tells


cdef struct Leaf:
    int32_t type
    int32_t bound_bytes     # the size of a bound; -1 is any
    int32_t repeated        # the highest repetition level
    int32_t defined         # the highest definition level


cdef struct Element:
    int64_t type
    int64_t type_length
    int64_t repetition
    int64_t children


cdef struct Chunk:
    int64_t type
    int64_t text_bytes
    int64_t repetition_levels
    int64_t definition_levels
    int64_t bounds[4]       # their sizes; -1 where there is none
    bint has_metadata
    bint has_own_key
    bint is_twice           # a field that is there twice


cdef int64_t binary_size(Reader* reader) noexcept nogil:
    cdef uint64_t size = varint(reader)
    pass_bytes(reader, size)
    return <int64_t>size if not reader.broken else -1


cdef int64_t levels(Reader* reader) noexcept nogil:
    """How many levels a histogram has; -2 where it holds something else."""
    cdef int kind = 0
    cdef uint64_t size = list_size(reader, &kind), left = size
    while left and not reader.broken:
        pass_value(reader, kind, DEEPEST - 1, True)
        left -= 1
    return <int64_t>size if kind == I64 or not size else -2


cdef void read_element(Reader* reader, Element* found) noexcept nogil:
    cdef int kind
    cdef int64_t identifier = 0
    found.type = found.type_length = found.repetition = -1
    found.children = 0
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return
        if kind == I32 and identifier == 1:
            found.type = short_integer(reader)
        elif kind == I32 and identifier == 2:
            found.type_length = short_integer(reader)
        elif kind == I32 and identifier == 3:
            found.repetition = short_integer(reader)
        elif kind == I32 and identifier == 5:
            found.children = short_integer(reader)
        else:
            pass_value(reader, kind, 1, False)


cdef void read_statistics(Reader* reader, Chunk* found) noexcept nogil:
    cdef int kind, place
    cdef int64_t identifier = 0
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return
        if kind == BINARY and (identifier == 1 or identifier == 2 or identifier == 5 or identifier == 6):
            place = <int>identifier - 1 if identifier < 3 else <int>identifier - 3
            found.is_twice |= found.bounds[place] >= 0
            found.bounds[place] = binary_size(reader)
        else:
            pass_value(reader, kind, 1, False)


cdef void read_sizes(Reader* reader, Chunk* found) noexcept nogil:
    cdef int kind
    cdef int64_t identifier = 0
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return
        if kind == I64 and identifier == 1:
            found.text_bytes = integer(reader)
        elif kind == LIST and identifier == 2:
            found.repetition_levels = levels(reader)
        elif kind == LIST and identifier == 3:
            found.definition_levels = levels(reader)
        else:
            pass_value(reader, kind, 1, False)


cdef void read_metadata(Reader* reader, Chunk* found) noexcept nogil:
    cdef int kind
    cdef int64_t identifier = 0
    cdef bint has_statistics = False, has_sizes = False
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return
        if kind == I32 and identifier == 1:
            found.type = short_integer(reader)
        elif kind == STRUCT and identifier == 12:
            found.is_twice |= has_statistics
            has_statistics = True
            read_statistics(reader, found)
        elif kind == STRUCT and identifier == 16:
            found.is_twice |= has_sizes
            has_sizes = True
            read_sizes(reader, found)
        else:
            pass_value(reader, kind, 1, False)


cdef void read_crypto(Reader* reader, Chunk* found) noexcept nogil:
    cdef int kind
    cdef int64_t identifier = 0
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return
        found.has_own_key |= kind == STRUCT and identifier == 2
        pass_value(reader, kind, 1, False)


cdef bint are_bounds_of(const Chunk* found, const Leaf* leaf) noexcept nogil:
    """Whether bounds have the size of a value. Arrow passes over empty ones, but not over those of booleans."""
    cdef int place
    cdef int64_t size
    if leaf.bound_bytes < 0:
        return True
    for place in range(4):
        size = found.bounds[place]
        if size > 0 and size != leaf.bound_bytes:
            return False
        if leaf.type == BOOLEAN and size != found.bounds[place ^ 1]:
            return False
        if leaf.type == BOOLEAN and size == 0:
            return False
    return True


cdef bint may_be_asked(Reader* reader, const Leaf* leaf) noexcept nogil:
    """Read a column chunk, and say whether it can be one of this column."""
    cdef Chunk found
    cdef int kind
    cdef int64_t identifier = 0
    memset(&found, 0, sizeof(Chunk))
    found.type = found.text_bytes = -1
    found.bounds[0] = found.bounds[1] = found.bounds[2] = found.bounds[3] = -1
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            break
        if kind == STRUCT and identifier == 3:
            found.is_twice |= found.has_metadata
            found.has_metadata = True
            read_metadata(reader, &found)
        elif kind == STRUCT and identifier == 8:
            read_crypto(reader, &found)
        else:
            pass_value(reader, kind, 1, False)
    if not found.has_metadata or found.is_twice or found.has_own_key or found.type != leaf.type:
        return False
    if found.repetition_levels != 0 and found.repetition_levels != leaf.repeated + 1:
        return False
    if found.definition_levels != 0 and found.definition_levels != leaf.defined + 1:
        return False
    if found.text_bytes != -1 and leaf.type != BYTE_ARRAY:
        return False
    return are_bounds_of(&found, leaf)


cdef int64_t read_leaves(Reader* reader, Leaf* leaves) noexcept nogil:
    """The leaves of the schema, by their place in row groups; return how many. There is room for one in each byte."""
    cdef int kind = 0, depth = 0
    cdef int64_t left[LEVELS]
    cdef int32_t repeated[LEVELS]
    cdef int32_t defined[LEVELS]
    cdef Element element
    cdef uint64_t size = list_size(reader, &kind), number
    cdef int64_t count = 0
    for number in range(size):
        read_element(reader, &element)
        if reader.broken:
            return 0
        if number == 0:
            left[0], repeated[0], defined[0] = element.children, 0, 0
            continue
        while depth and left[depth] == 0:
            depth -= 1
        if left[depth] <= 0 or depth + 1 == LEVELS:
            reader.broken = True
            return 0
        left[depth] -= 1
        left[depth + 1] = element.children
        repeated[depth + 1] = repeated[depth] + (element.repetition == 2)
        defined[depth + 1] = defined[depth] + (element.repetition == 1 or element.repetition == 2)
        if element.children == 0 and element.type != -1:
            if not 0 <= element.type < TYPES or (element.type == FIXED and element.type_length <= 0):
                reader.broken = True
                return 0
            leaves[count].type = <int32_t>element.type
            leaves[count].bound_bytes = <int32_t>(
                element.type_length if element.type == FIXED else BOUND_BYTES[element.type]
            )
            leaves[count].repeated = repeated[depth + 1]
            leaves[count].defined = defined[depth + 1]
            count += 1
        else:
            depth += 1
    return count


cdef bint read_group(Reader* reader, const Leaf* leaves, int64_t count, uint8_t* answers) noexcept nogil:
    """Read a row group. False where it doesn't have the columns of the schema."""
    cdef int kind = 0, inner = 0
    cdef int64_t identifier = 0, number
    cdef bint has_columns = False
    while True:
        kind = field(reader, &identifier)
        if kind == STOP:
            return has_columns
        if kind != LIST or identifier != 1:
            pass_value(reader, kind, 1, False)
            continue
        if has_columns or list_size(reader, &inner) != <uint64_t>count or inner != STRUCT:
            return False
        has_columns = True
        for number in range(count):
            answers[number] = may_be_asked(reader, &leaves[number])


def askable_chunks(const uint8_t[::1] footer not None):
    """Return a byte for each column chunk, row group by row group: 1 where pyarrow can be asked for it, else 0.

    Raises ThriftError where the footer can't be read, or its row groups don't have the columns of its schema.
    """
    cdef Reader reader
    cdef int kind, inner = 0
    cdef int64_t identifier = 0, count = -1
    cdef uint64_t groups
    cdef bint has_groups = False
    cdef bytearray found = bytearray(), answers
    if footer.shape[0] == 0:
        raise ThriftError
    reader.at, reader.end, reader.broken = &footer[0], &footer[0] + footer.shape[0], False
    cdef Leaf* leaves = <Leaf*>PyMem_Malloc((footer.shape[0] + 1) * sizeof(Leaf))
    if leaves == NULL:
        raise MemoryError
    try:
        while True:
            kind = field(&reader, &identifier)
            if kind == STOP:
                break
            if kind == LIST and identifier == 2 and count == -1:
                count = read_leaves(&reader, leaves)
            elif kind == LIST and identifier == 4 and count > 0 and not has_groups:
                has_groups = True
                groups = list_size(&reader, &inner)
                while groups and not reader.broken:
                    answers = bytearray(count)
                    if not read_group(&reader, leaves, count, answers):
                        raise ThriftError
                    found += answers
                    groups -= 1
            elif kind == LIST and (identifier == 2 or identifier == 4):
                raise ThriftError   # twice, or before the schema
            else:
                pass_value(&reader, kind, 1, False)
        if reader.broken:
            raise ThriftError
        return bytes(found)
    finally:
        PyMem_Free(leaves)
