# The compiled form of all writers of a mapping: nodes of types, and the columns that they fill.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from schema_mapping.kernel.growing cimport ColumnPlace

cdef enum Op:
    OP_NULL = 0
    OP_BOOLEAN = 1
    OP_INT = 2
    OP_INT_AS_LONG = 3
    OP_LONG = 4
    OP_FLOAT = 5
    OP_FLOAT_AS_DOUBLE = 6
    OP_DOUBLE = 7
    OP_BYTES = 8
    OP_STRING = 9
    OP_FIXED = 10
    OP_ENUM = 11
    OP_DATE = 12
    OP_TIME_MILLIS = 13
    OP_TIME_MICROS = 14
    OP_TIMESTAMP_MILLIS = 15
    OP_TIMESTAMP_MICROS = 16
    OP_UUID_TEXT = 17
    OP_DECIMAL_BYTES = 18
    OP_DECIMAL_FIXED = 19
    OP_RECORD = 20
    OP_ARRAY = 21
    OP_MAP = 22
    OP_UNION = 23
    OP_NULLABLE = 24
    OP_CUT = 25         # a type whose bytes are kept whole
    OP_ASIDE = 26       # a type without a column: its values are kept raw
    OP_LONG_FIXED = 27  # byte strings of one size in a column of bytes

# A type at a place of a writer's schema. Without columns, `out` is -1: then its bytes are only checked.
cdef struct Node:
    int32_t op
    int32_t out         # the column of its values; of a struct, its validity; of a list or map, its offsets
    int32_t first       # the first of its nodes, which lie side by side; the first symbol of an enum
    int32_t count       # how many nodes or symbols; of a nullable type, the branch that is null; of a decimal, the digits
    int32_t space       # the row space of items; the size of a fixed type; of a cut, the column of its validity
    int32_t extra       # the column of a map's keys; an enum's place in `lookup`
    int32_t mask        # of an enum's part of `lookup`
    int32_t is_empty    # whether values take no bytes

cdef class Tables:
    cdef Node* nodes
    cdef ColumnPlace* columns
    cdef int32_t* programs      # the root's node of each writer
    cdef int64_t* row_bytes     # memory of one row of each space
    cdef int32_t* map_spaces
    cdef uint64_t* symbols      # start << 32 | length
    cdef int32_t* lookup        # index in `symbols` + 1, or 0
    cdef uint8_t* texts
    cdef uint64_t* forms        # start << 32 | length: for each writer two, in canonical form and with sized blocks
    cdef readonly int32_t node_count, column_count, space_count, writer_count, map_count
    cdef readonly int32_t row_column, prefix_column, raw_column, err_column, form_column
    cdef readonly bint keep_raw
    cdef object owners
