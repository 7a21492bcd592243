"""The kernels: Cython loops that decode Protobuf bytes to Arrow buffers and encode these back.

They interpret the tables of a compiled mapping (`tables`). `decoder` and `encoder` are the entries from Python; the
other kernels work for these two. What belongs here: loops over bytes and rows. What doesn't: anything that is decided
once for a schema; that is in the Python modules of `protobuf`.
"""

__all__ = ["decoder", "encoder", "tables"]
