"""Records as lossless JSON lines.

    {"topic": "orders", "partition": 0, "offset": 12, "timestamp": 1700000000000, "timestamp_type": 0,
     "key": "k", "value": {"base64": "AP8="}, "headers": [["trace", "1"], ["trace", null]]}

Valid UTF-8 becomes a string, other bytes an object with their base64; so do header names. `timestamp` is in ms, -1
without one. `timestamp_type` is Kafka's: 0 create time, 1 log append time.

With `--decode` a record also has its schema version. A key or value with a schema is canonical JSON (of the format
`json` as it was sent, with spaces for line breaks), and `key_type` or `value_type` names its type. An undecodable one
is an object with base64 and reason.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

_COLUMNS = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")


def render(topic: str, batch: pa.RecordBatch) -> Iterator[bytes]:
    columns = [batch.column(name).to_pylist() for name in _COLUMNS]
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    for partition, offset, timestamp, timestamp_type, key, value, headers in zip(*columns, strict=True):
        record = {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp,
            "timestamp_type": timestamp_type,
            "key": to_json(key),
            "value": to_json(value),
            "headers": [[to_json(header["key"]), to_json(header["value"])] for header in headers],
        }
        yield encode(record).encode() + b"\n"


def render_decoded(topic: str, batch: pa.RecordBatch) -> Iterator[bytes]:
    names = (*_COLUMNS, "schema_version", "shown_key", "shown_value")
    columns = [batch.column(name).to_pylist() for name in names]
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    for partition, offset, timestamp, timestamp_type, key, value, headers, version, shown_key, shown_value in zip(
        *columns, strict=True
    ):
        head = {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": timestamp,
            "timestamp_type": timestamp_type,
            "schema_version": version,
        }
        tail = {"headers": [[to_json(header["key"]), to_json(header["value"])] for header in headers]}
        parts = (
            encode(head)[:-1],
            _shown("key", key, shown_key, encode),
            _shown("value", value, shown_value, encode),
            encode(tail)[1:],
        )
        yield ",".join(parts).encode() + b"\n"


def _shown(name: str, data: bytes | None, shown: Mapping[str, str | None] | None, encode: Callable[[Any], str]) -> str:
    kind = shown["type"] if shown else None
    if shown and shown["json"] is not None:
        text = shown["json"]
    elif shown and shown["reason"] is not None and data is not None:
        text = encode({"base64": b64encode(data).decode("ascii"), "reason": shown["reason"]})
    else:
        text = encode(to_json(data))
    return f'"{name}_type":{encode(kind)},"{name}":{text}'


def to_json(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def from_json(value: Any) -> bytes | None:
    """Invert `to_json`. Raises ValueError."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case {"base64": str(text)}:
            return b64decode(text, validate=True)
        case _:
            raise ValueError(f"neither null, nor a string, nor an object with base64: {value!r}")
