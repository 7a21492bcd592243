"""Cython loops that decode Protobuf bytes to Arrow buffers and encode these back.

They interpret the tables of a compiled mapping (`tables`). `decoder` and `encoder` are the entries from Python.
"""

__all__ = ["decoder", "encoder", "tables"]
