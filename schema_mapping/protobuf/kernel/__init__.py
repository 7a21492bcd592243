"""Cython loops between Protobuf bytes and Arrow buffers, by compiled `tables`.

Python calls `decoder` and `encoder`.
"""

__all__ = ["decoder", "encoder", "tables"]
