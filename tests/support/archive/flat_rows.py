"""Expected rows of a flat view."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.support.archive.three_engines import plain
from tests.support.schemas.order_schema import order_bytes, order_class

Row = Mapping[str, Any]

FIELDS: Final = {
    "id": ("id",),
    "customer": ("customer",),
    "state": ("state",),
    "lines": ("lines",),
    "counters": ("counters",),
    "address_street": ("address", "street"),
    "address_city": ("address", "city"),
    "address_zip": ("address", "zip"),
    "locker": ("locker",),
    "ratings": ("ratings",),
    "gift": ("gift",),
    "token": ("token",),
    "substitutes": ("substitutes",),
    "previous_unrecognized": ("previous", "__unrecognized__"),
    "value_error": ("__err__",),
}
"""The columns of an order's value, with the names on their way."""
KAFKA: Final = (
    "partition", "offset", "event_timestamp", "ingest_timestamp", "batch_start", "batch_end", "timestamp_type",
    "append_timestamp", "raw_timestamp", "leader_epoch", "producer_id", "producer_epoch", "base_sequence", "attributes",
    "schema_version",
)  # fmt: skip
FLAT: Final = ("key", *FIELDS, "headers", "tombstone", *(f"kafka_{name}" for name in KAFKA))
"""The columns of the flat view, in order."""

Form = Callable[[bytes], Any]


def as_utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex().upper()}"


FORMS: Final[Mapping[str, Form]] = {
    "raw": bytes,
    "hex": lambda data: data.hex().upper(),
    "base64": lambda data: base64.b64encode(data).decode(),
    "utf8": as_utf8,
}


def orders(count: int = 60) -> Iterator[dict[str, Any]]:
    noise = random.Random(11)
    ahead = order_class()(id=7, customer="ahead").SerializeToString() + b"\xfa\x01\x03new"
    odd_order = order_class()(id=9, customer="odd").SerializeToString()
    values = [order_bytes(noise) for _ in range(count)] + [None, b"", b"\xff\xff", ahead, odd_order[2:] + odd_order[:2]]
    headers = (
        [("trace", b"1"), ("other", b"\xff\x00"), ("trace", b"2")],
        [("trace", b"3"), ("trace", None)],
        [("", b""), ("naïve", "é".encode())],
        None,
    )
    keys = (b"a", b"", None, b"\xfe\x01", "schlüssel".encode(), b"f", b"g")
    for number, value in enumerate([*values, None, values[0]]):
        yield {
            "key": keys[number % len(keys)],
            "value": value,
            "partition": number % 2,
            "timestamp": 1_700_000_000_000 + number,
            "headers": headers[number % len(headers)],
        }


def flat(row: Row, form: Form) -> dict[str, Any]:
    val = row["val"]
    broken = bool(val and val["__err__"])
    result = {name: _at(val, path) for name, path in FIELDS.items()}
    if broken:
        result = {
            name: None if value == [] else value for name, value in result.items()
        }  # as pyiceberg shows null lists
    return {
        "key": _shown(None if row["key"] is None else row["key"]["__raw__"], form),
        **{
            name: _shown(value, form) if name in ("token", "previous_unrecognized") else value
            for name, value in result.items()
        },
        "headers": _headers(row, form),
        "tombstone": val is None,
        **_kafka(row),
    }


def errors(rows: list[Row], form: Form) -> list[dict[str, Any]]:
    return [
        {
            "key": _shown(None if row["key"] is None else row["key"]["__raw__"], form),
            "value": _shown(row["val"]["__raw__"], form),
            "value_error": row["val"]["__err__"],
            "headers": _headers(row, form),
            **_kafka(row),
        }
        for row in rows
        if row["val"] is not None and (row["val"]["__raw__"] is not None or row["val"]["__err__"] is not None)
    ]


def latest(rows: list[Row], form: Form) -> list[dict[str, Any]]:
    last: dict[tuple[int, bytes], Row] = {}
    for row in sorted(rows, key=lambda row: int(row["kafka"]["offset"])):
        if row["key"] is not None:
            last[row["kafka"]["partition"], row["key"]["__raw__"]] = row
    shown = (flat(row, form) for row in last.values() if row["val"] is not None)
    return [{name: value for name, value in row.items() if name != "tombstone"} for row in shown]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    ordered = sorted(rows, key=lambda row: (row["kafka_partition"], row["kafka_offset"]))
    return [json.dumps(plain(row | {"headers": _ordered(row["headers"])}), sort_keys=True) for row in ordered]


def _ordered(headers: Any) -> Any:
    return headers if headers is None else sorted(dict(headers).items())


def _headers(row: Row, form: Form) -> dict[str, Any]:
    return {header["key"]: _shown(header["value"], form) for header in row["headers"]}


def _kafka(row: Row) -> dict[str, Any]:
    return {f"kafka_{name}": row["kafka"][name] for name in KAFKA}


def _shown(value: bytes | None, form: Form) -> Any:
    return None if value is None else form(value)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = None if value is None else value[name]
    return value
