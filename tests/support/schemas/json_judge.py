"""Whether bytes are JSON by RFC 8259, judged by CPython's parser with the texts of numbers kept."""

from __future__ import annotations

import json


def _refuse(name: str) -> None:
    raise ValueError(name)


def is_json(value: bytes) -> bool:
    """Without NaN and Infinity, byte order marks, and control characters in texts."""
    try:
        json.loads(value.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return not value.startswith(b"\xef\xbb\xbf")
