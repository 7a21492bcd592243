# cython: language_level=3
"""The compiled form of a mapping as C arrays: `table_builder` lays it out, and the kernel loops read it."""

import sys

if sys.byteorder != "little":
    raise ImportError("the kernel reads numbers of Protobuf and Arrow where they lie: it needs a little-endian machine")


cdef class Tables:
    """C views of a program's tables. They keep the numpy arrays below them alive; nobody writes these again."""

    def __init__(self, arrays, *, root, keep_raw):
        self.owners = arrays
        self.fields = <Field*>_address(arrays["fields"], sizeof(Field))
        self.nodes = <Node*>_address(arrays["nodes"], sizeof(Node))
        self.spaces = <Space*>_address(arrays["spaces"], sizeof(Space))
        self.outputs = <Output*>_address(arrays["outputs"], sizeof(Output))
        self.maps = <MapKeys*>_address(arrays["maps"], sizeof(MapKeys))
        self.natives = <Native*>_address(arrays["natives"], sizeof(Native))
        self.enums = <Enumeration*>_address(arrays["enums"], sizeof(Enumeration))
        self.numbers = <uint32_t*>_address(arrays["numbers"], sizeof(uint32_t))
        self.lookup = <int32_t*>_address(arrays["lookup"], sizeof(int32_t))
        self.places = <int32_t*>_address(arrays["places"], sizeof(int32_t))
        self.late_fields = <Field*>_address(arrays["late_fields"], sizeof(Field))
        self.late_lookup = <int32_t*>_address(arrays["late_lookup"], sizeof(int32_t))
        self.late_places = <int32_t*>_address(arrays["late_places"], sizeof(int32_t))
        self.late = <int32_t*>_address(arrays["late"], sizeof(int32_t))
        self.late_columns = <int32_t*>_address(arrays["late_columns"], sizeof(int32_t))
        self.has_late = bool((arrays["late"] != arrays["places"]).any())
        self.enum_numbers = <int32_t*>_address(arrays["enum_numbers"], sizeof(int32_t))
        self.enum_names = <uint64_t*>_address(arrays["enum_names"], sizeof(uint64_t))
        self.enum_lookup = <int32_t*>_address(arrays["enum_lookup"], sizeof(int32_t))
        self.name_lookup = <int32_t*>_address(arrays["name_lookup"], sizeof(int32_t))
        self.names = <uint8_t*>_address(arrays["names"], sizeof(uint8_t))
        self.names_size = arrays["names"].size
        self.field_count = arrays["fields"].size
        self.node_count = arrays["nodes"].size
        self.space_count = arrays["spaces"].size
        self.output_count = arrays["outputs"].size
        self.enum_count = arrays["enums"].size
        self.map_count = arrays["maps"].size
        self.native_count = arrays["natives"].size
        self.raw_slot = root["raw_slot"]
        self.err_slot = root["err_slot"]
        self.prefix_slot = root["prefix_slot"]
        self.form_slot = root["form_slot"]
        self.form_bit = root["form_bit"]
        self.form_size = root["form_size"]
        self.columns_form_size = root["columns_form_size"]
        self.raw_bit = root["raw_bit"]
        self.err_bit = root["err_bit"]
        self.prefix_bit = root["prefix_bit"]
        self.ok_bit = root["ok_bit"]
        self.row_bit = root["row_bit"]
        self.keep_raw = keep_raw


cdef size_t _address(array, size_t item) except 0:
    if array.dtype.itemsize != item or not array.flags.c_contiguous:
        raise TypeError(f"a table of {item}-byte items is needed, not {array.dtype}")
    return <size_t>array.ctypes.data


OPS = {
    "INT64": OP_INT64,
    "INT32": OP_INT32,
    "UINT32": OP_UINT32,
    "SINT32": OP_SINT32,
    "SINT64": OP_SINT64,
    "BOOL": OP_BOOL,
    "OPEN_ENUM": OP_OPEN_ENUM,
    "CLOSED_ENUM": OP_CLOSED_ENUM,
    "FIXED64": OP_FIXED64,
    "DOUBLE": OP_DOUBLE,
    "FIXED32": OP_FIXED32,
    "FLOAT": OP_FLOAT,
    "STRING": OP_STRING,
    "TEXT": OP_TEXT,
    "BYTES": OP_BYTES,
    "MESSAGE": OP_MESSAGE,
    "GROUP": OP_GROUP,
    "MAP": OP_MAP,
    "NONE": OP_NONE,
    "ASIDE": OP_ASIDE,
}
FIELD_FLAGS = {
    "LIST": FIELD_LIST,
    "PACKED": FIELD_PACKED,
    "IMPLICIT": FIELD_IMPLICIT,
    "MANY": FIELD_MANY,
    "WIDE": FIELD_WIDE,
    "NANOS": FIELD_NANOS,
}
NODE_FLAGS = {
    "ENTRY": NODE_ENTRY,
    "CUT": NODE_CUT,
    "MESSAGE_SET": NODE_MESSAGE_SET,
    "ASIDE": NODE_ASIDE,
    "EMPTY": NODE_EMPTY,
    "TIMESTAMP": NODE_TIMESTAMP,
    "DURATION": NODE_DURATION,
    "WRAPPER": NODE_WRAPPER,
    "STRUCT": NODE_STRUCT,
    "VALUE": NODE_VALUE,
    "LIST_VALUE": NODE_LIST_VALUE,
}
OUTPUTS = {
    "BITS": OUT_BITS,
    "BOOL": OUT_BOOL,
    "32": OUT_32,
    "64": OUT_64,
    "BYTES": OUT_BYTES,
    "ENUM": OUT_ENUM,
    "UNKNOWN": OUT_UNKNOWN,
    "COUNTS": OUT_COUNTS,
    "DECIMAL": OUT_DECIMAL,
}


def name_hash(bytes name not None):
    """The hash for looking up an enum's names."""
    return hash_name(<const uint8_t*>name, len(name))
