# cython: language_level=3
"""The compiled form of a mapping's writers as C arrays: `program` lays it out, and the kernel loops read it."""

import sys

from schema_mapping.kernel.octets cimport hash_text

if sys.byteorder != "little":
    raise ImportError("the kernel reads numbers of Avro and Arrow where they lie: it needs a little-endian machine")


cdef class Tables:
    """C views of a program's tables. They keep the numpy arrays below them alive, and never change."""

    def __init__(self, arrays, *, specials, keep_raw):
        self.owners = arrays
        self.nodes = <Node*>_address(arrays["nodes"], sizeof(Node))
        self.columns = <ColumnPlace*>_address(arrays["columns"], sizeof(ColumnPlace))
        self.programs = <int32_t*>_address(arrays["programs"], sizeof(int32_t))
        self.row_bytes = <int64_t*>_address(arrays["row_bytes"], sizeof(int64_t))
        self.map_spaces = <int32_t*>_address(arrays["map_spaces"], sizeof(int32_t))
        self.symbols = <uint64_t*>_address(arrays["symbols"], sizeof(uint64_t))
        self.lookup = <int32_t*>_address(arrays["lookup"], sizeof(int32_t))
        self.texts = <uint8_t*>_address(arrays["texts"], sizeof(uint8_t))
        self.forms = <uint64_t*>_address(arrays["forms"], sizeof(uint64_t))
        self.node_count = arrays["nodes"].size
        self.column_count = arrays["columns"].size
        self.space_count = arrays["row_bytes"].size
        self.writer_count = arrays["programs"].size
        self.map_count = arrays["map_spaces"].size
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
    "NULL": OP_NULL,
    "BOOLEAN": OP_BOOLEAN,
    "INT": OP_INT,
    "INT_AS_LONG": OP_INT_AS_LONG,
    "LONG": OP_LONG,
    "FLOAT": OP_FLOAT,
    "FLOAT_AS_DOUBLE": OP_FLOAT_AS_DOUBLE,
    "DOUBLE": OP_DOUBLE,
    "BYTES": OP_BYTES,
    "STRING": OP_STRING,
    "FIXED": OP_FIXED,
    "ENUM": OP_ENUM,
    "DATE": OP_DATE,
    "TIME_MILLIS": OP_TIME_MILLIS,
    "TIME_MICROS": OP_TIME_MICROS,
    "TIMESTAMP_MILLIS": OP_TIMESTAMP_MILLIS,
    "TIMESTAMP_MICROS": OP_TIMESTAMP_MICROS,
    "UUID_TEXT": OP_UUID_TEXT,
    "DECIMAL_BYTES": OP_DECIMAL_BYTES,
    "DECIMAL_FIXED": OP_DECIMAL_FIXED,
    "RECORD": OP_RECORD,
    "ARRAY": OP_ARRAY,
    "MAP": OP_MAP,
    "UNION": OP_UNION,
    "NULLABLE": OP_NULLABLE,
    "CUT": OP_CUT,
    "ASIDE": OP_ASIDE,
    "LONG_FIXED": OP_LONG_FIXED,
}


def symbol_hash(bytes text not None):
    """The hash for looking up an enum's symbols."""
    return hash_text(<const uint8_t*>text, len(text), 0)
