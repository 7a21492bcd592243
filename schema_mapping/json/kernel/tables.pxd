# The compiled form of a mapping: nodes of types, the columns that they fill, and the names of members.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from schema_mapping.kernel.growing cimport ColumnPlace

cdef enum Op:
    OP_BOOLEAN = 0
    OP_INT = 1
    OP_LONG = 2
    OP_DOUBLE = 3
    OP_STRING = 4
    OP_TEXT = 5         # any value, kept as JSON text
    OP_CUT = 6          # an object without columns, kept as JSON text
    OP_OBJECT = 7
    OP_ARRAY = 8
    OP_MAP = 9
    OP_CHOICE = 10      # one of several types: the first byte of a value decides

cdef struct Node:
    int32_t op
    int32_t out         # the column of its values; of an object or choice, its validity; of a list or map, its offsets
    int32_t first       # the first of its nodes, which lie side by side
    int32_t count       # how many nodes
    int32_t space       # the row space of items
    int32_t extra       # the column of a map's keys, or of an object's unknown members; of a cut, its validity
    int32_t object      # the number of an object, in the order of nodes; forms name objects so
    int32_t member      # the number of an object's first member among the members of all objects
    int32_t lookup      # an object's place in `lookup`
    int32_t mask        # of its part of `lookup`

cdef class Tables:
    cdef Node* nodes
    cdef ColumnPlace* columns
    cdef int64_t* row_bytes     # memory of one row of each space
    cdef int32_t* map_spaces
    cdef uint64_t* names        # of members: start << 32 | length << 1 | whether it is written as it is
    cdef int32_t* lookup        # index in `names` + 1, or 0
    cdef int32_t* objects       # the node of each object
    cdef uint8_t* texts         # the names in quotes
    cdef int32_t root
    cdef readonly int32_t column_count, space_count, map_count, member_count, object_count
    cdef readonly int32_t row_column, prefix_column, raw_column, err_column, form_column
    cdef readonly bint keep_raw
    cdef object owners


# The column that is null when the node's value is.
cdef inline int32_t presence(const Node* node) noexcept nogil:
    return node.extra if node.op == OP_CUT else node.out
