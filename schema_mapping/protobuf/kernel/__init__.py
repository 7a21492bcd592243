"""Cython loops between Protobuf and Arrow, by compiled `tables`.

Python calls `decoder` and `encoder`.
"""

__all__ = ["decoder", "encoder", "tables"]
