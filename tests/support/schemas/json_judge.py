"""CPython's parser as the judge of JSON by RFC 8259."""

from __future__ import annotations

import json


def _refuse(name: str) -> None:
    raise ValueError(name)


def is_json(value: bytes) -> bool:
    """Refuses NaN, Infinity, byte order marks, and control characters."""
    try:
        json.loads(value.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return not value.startswith(b"\xef\xbb\xbf")
