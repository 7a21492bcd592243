# The compiled form of a mapping that every kernel loop interprets; see tables.pyx.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

# How one value of a field is read and written. Varints come first.
cdef enum Op:
    OP_INT64 = 0
    OP_INT32 = 1
    OP_UINT32 = 2
    OP_SINT32 = 3
    OP_SINT64 = 4
    OP_BOOL = 5
    OP_OPEN_ENUM = 6
    OP_CLOSED_ENUM = 7
    OP_LAST_VARINT = 7
    OP_FIXED64 = 8
    OP_DOUBLE = 9
    OP_FIXED32 = 10
    OP_FLOAT = 11
    OP_STRING = 12
    OP_TEXT = 13
    OP_BYTES = 14
    OP_MESSAGE = 15
    OP_GROUP = 16
    OP_MAP = 17
    OP_NONE = 18        # of the entry that means no field
    OP_ASIDE = 19       # known, but without a column: its bytes are among the unknown ones

cdef enum FieldFlag:
    FIELD_LIST = 1      # repeated or map: values open rows of their own
    FIELD_PACKED = 2    # the canonical form is one packed run
    FIELD_IMPLICIT = 4  # the default is never on the wire in canonical form
    FIELD_MANY = 8      # may come several times in a row in canonical form: repeated and not packed, or a map
    FIELD_WIDE = 16     # unsigned 64 bits, in a column of 128-bit decimals
    FIELD_NANOS = 32    # the column after the field's has the nanoseconds of its times

cdef enum NodeFlag:
    NODE_ENTRY = 1        # a map's key and value
    NODE_CUT = 2          # kept whole in its unknown slot; its fields are only checked
    NODE_MESSAGE_SET = 4
    NODE_ASIDE = 8        # some of its fields have no column
    NODE_EMPTY = 1024     # its type has neither fields nor room for extensions
    # Well-known types that have one column. Those of JSON are kept whole, too, until their text is made.
    NODE_TIMESTAMP = 16
    NODE_DURATION = 32
    NODE_WRAPPER = 64
    NODE_STRUCT = 128
    NODE_VALUE = 256
    NODE_LIST_VALUE = 512
    NODE_JSON = 896
    NODE_NATIVE = 1008

cdef enum WireType:
    WIRE_VARINT = 0
    WIRE_64 = 1
    WIRE_BYTES = 2
    WIRE_START = 3
    WIRE_END = 4
    WIRE_32 = 5

# Kinds of output columns.
cdef enum OutputKind:
    OUT_BITS = 0        # validity: a presence bit
    OUT_BOOL = 1
    OUT_32 = 2
    OUT_64 = 3
    OUT_BYTES = 4
    OUT_ENUM = 5        # bytes; if nothing was on the wire, the name of zero, whose index is `extra`
    OUT_UNKNOWN = 6     # bytes with their own validity: null if there are none
    OUT_COUNTS = 7      # offsets of a list
    OUT_DECIMAL = 8     # unsigned 64 bits, in 128 bits

cdef struct Field:
    uint32_t tag        # the canonical tag; if packed, that of the run
    uint32_t match      # the tag that the hot loop accepts; NO_TAG if the field needs a slower path
    uint8_t op
    uint8_t flags
    uint8_t tag_size
    uint8_t spare
    int32_t slot        # slot of the value in its row; for a list, of its count
    int32_t presence    # bit in the row's head
    int32_t oneof       # slot that names the oneof's present member, or -1
    int32_t owner       # node that the field belongs to
    int32_t node        # node of the message or map entry, or -1
    int32_t space       # row space of the list, or -1
    int32_t enumeration

cdef struct Node:
    int32_t first_field
    int32_t field_count
    int32_t lookup      # where the node's part of the dense lookup starts
    int32_t dense       # numbers below this are looked up, others are searched
    int32_t unknown     # slot of the unrecognized bytes, or -1
    int32_t flags
    int32_t has_lists   # whether rows of other spaces belong to a row of this node

cdef struct Enumeration:
    int32_t first       # index of the first of its values, ascending by number
    int32_t count
    int32_t lowest      # lowest number of the dense part
    int32_t dense       # size of the dense part
    int32_t lookup
    int32_t by_name     # where its hash table starts in `name_lookup`
    int32_t name_mask

cdef struct Space:
    int32_t stride      # 64-bit words of a row
    int32_t parent      # row space with the counts, or -1 for the root
    int32_t count_slot
    int32_t head        # words of presence bits that a row starts with

cdef struct Output:
    int32_t kind
    int32_t space
    int32_t slot        # or a presence bit
    int32_t extra
    int32_t gate        # presence bit without which the slot is empty, or -1

cdef struct MapKeys:
    int32_t space
    int32_t slot        # of the key
    int32_t as_bytes

# A well-known type with one column: the slots of its parsed parts, and of the column's value.
cdef struct Native:
    int32_t space
    int32_t kind        # the flag of its node
    int32_t slot        # holds the seconds, then the value; or a JSON message's pieces, then its text
    int32_t nanos
    int32_t unknown     # slot of the unrecognized bytes
    int32_t presence    # bit in the row's head, or -1 if the message is always present
    int32_t fits        # bit that says whether the column can hold the value, or -1 if the column has no nulls
    int32_t keeps_nanos # whether the nanoseconds that the value lacks have a column: its slot is `nanos`

cdef class Tables:
    cdef Field* fields
    cdef Node* nodes
    cdef Space* spaces
    cdef Output* outputs
    cdef MapKeys* maps
    cdef Native* natives
    cdef Enumeration* enums
    cdef uint32_t* numbers        # of fields, to search in
    cdef int32_t* lookup
    cdef int32_t* places          # index of the field of each entry in `numbers`
    cdef Field* late_fields       # the fields with the members of oneofs after the other fields
    cdef int32_t* late_lookup
    cdef int32_t* late_places
    cdef int32_t* late            # for each index in `late_fields`, the index in `fields`
    cdef int32_t* late_columns    # as `late`, but fields without a column stay among those outside oneofs
    cdef int32_t* enum_numbers
    cdef uint64_t* enum_names     # slots; the names are at the start of the spill
    cdef int32_t* enum_lookup
    cdef int32_t* name_lookup     # index in `enum_names` + 1, or 0
    cdef uint8_t* names
    cdef readonly int64_t names_size
    cdef readonly int32_t field_count, node_count, space_count, output_count, enum_count, map_count, native_count
    cdef readonly int32_t raw_slot, err_slot, prefix_slot, form_slot, raw_bit, err_bit, prefix_bit, form_bit
    cdef readonly int32_t ok_bit, row_bit, form_size, columns_form_size, has_late
    cdef readonly int32_t keep_raw
    cdef object owners


cdef inline uint32_t hash_name(const uint8_t* name, int64_t size) noexcept nogil:
    cdef uint64_t head = 0
    cdef uint64_t tail = 0
    memcpy(&head, name, 8 if size >= 8 else size)
    if size > 8:
        memcpy(&tail, name + size - 8, 8)
    head = (head ^ (tail * <uint64_t>0x9E3779B97F4A7C15) ^ <uint64_t>size) * <uint64_t>0xBF58476D1CE4E5B9
    return <uint32_t>(head >> 40)
