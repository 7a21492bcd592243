# cython: language_level=3
"""The compiled form of a mapping as C arrays: `program` lays it out, and the kernel loops read it."""

import sys

from schema_mapping.kernel.octets cimport hash_text

if sys.byteorder != "little":
    raise ImportError("the kernel writes numbers into Arrow buffers in place: it needs a little-endian machine")


cdef class Tables:
    """C views of a program's tables. They keep the numpy arrays below them alive, and never change."""

    def __init__(self, arrays, *, specials, root, keep_raw):
        self.owners = arrays
        self.nodes = <Node*>_address(arrays["nodes"], sizeof(Node))
        self.columns = <ColumnPlace*>_address(arrays["columns"], sizeof(ColumnPlace))
        self.row_bytes = <int64_t*>_address(arrays["row_bytes"], sizeof(int64_t))
        self.map_spaces = <int32_t*>_address(arrays["map_spaces"], sizeof(int32_t))
        self.names = <uint64_t*>_address(arrays["names"], sizeof(uint64_t))
        self.lookup = <int32_t*>_address(arrays["lookup"], sizeof(int32_t))
        self.objects = <int32_t*>_address(arrays["objects"], sizeof(int32_t))
        self.texts = <uint8_t*>_address(arrays["texts"], sizeof(uint8_t))
        self.root = root
        self.column_count = arrays["columns"].size
        self.space_count = arrays["row_bytes"].size
        self.map_count = arrays["map_spaces"].size
        self.member_count = arrays["names"].size
        self.object_count = arrays["objects"].size
        self.row_column = specials["row"]
        self.prefix_column = specials["prefix"]
        self.raw_column = specials["raw"]
        self.err_column = specials["err"]
        self.form_column = specials["form"]
        self.keep_raw = keep_raw


cdef size_t _address(array, size_t item) except 0:
    if array.dtype.itemsize != item or not array.flags.c_contiguous:
        raise TypeError(f"a table of {item}-byte items is needed, not {array.dtype}")
    return <size_t>array.ctypes.data


OPS = {
    "BOOLEAN": OP_BOOLEAN,
    "INT": OP_INT,
    "LONG": OP_LONG,
    "DOUBLE": OP_DOUBLE,
    "STRING": OP_STRING,
    "TEXT": OP_TEXT,
    "CUT": OP_CUT,
    "OBJECT": OP_OBJECT,
    "ARRAY": OP_ARRAY,
    "MAP": OP_MAP,
    "CHOICE": OP_CHOICE,
}


def name_hash(bytes text not None):
    """The hash for looking up a member."""
    return hash_text(<const uint8_t*>text, len(text), 0)
