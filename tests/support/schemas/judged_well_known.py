"""Google's results for well-known types."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import json_format

from schema_mapping.protobuf.field_kinds import WellKnown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def judged(message: Any, kind: WellKnown, *, has_nulls: bool) -> Any:
    if kind is WellKnown.TIMESTAMP:
        return _timestamp(message, has_nulls=has_nulls)
    if kind is WellKnown.DURATION:
        return _duration(message, has_nulls=has_nulls)
    return _comparable(_json(message))


def json_cell(text: str) -> Any:
    return _comparable(json.loads(text, object_pairs_hook=_unique))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key stands twice"
    return dict(pairs)


def _timestamp(message: Any, *, has_nulls: bool) -> datetime | None:
    micros = message.seconds * 1_000_000 + message.nanos // 1_000
    fits = (FIRST - EPOCH) // MICRO <= micros <= (LAST - EPOCH) // MICRO
    result = EPOCH + micros * MICRO if fits else None
    try:
        assert message.ToDatetime(UTC) == result
    except (ValueError, OverflowError):
        assert not 0 <= message.nanos < 10**9 or result is None
    return result if result is not None or has_nulls else LAST if message.seconds > 0 else FIRST


def _duration(message: Any, *, has_nulls: bool) -> int | None:
    whole = abs(message.nanos) // 1_000
    micros: int = message.seconds * 1_000_000 + (whole if message.nanos > 0 else -whole)
    try:
        assert message.ToMicroseconds() == micros
    except ValueError:
        assert abs(message.nanos) >= 10**9 or abs(message.seconds) > 10**11 or message.seconds * message.nanos < 0
    if -(2**63) <= micros < 2**63:
        return micros
    return None if has_nulls else 2**63 - 1 if message.seconds > 0 else -(2**63)


def _json(message: Any) -> Any:
    walked = plain_json(message)
    try:
        assert _comparable(json_format.MessageToDict(message)) == _comparable(walked)
    except (json_format.SerializeToJsonError, ValueError):
        assert any(word in json.dumps(walked) for word in ("NaN", "Infinity"))
    return walked


def plain_json(message: Any, *, unset: Any = None) -> Any:
    match message.DESCRIPTOR.name:
        case "Struct":
            return {key: plain_json(value, unset=unset) for key, value in message.fields.items()}
        case "ListValue":
            return [plain_json(value, unset=unset) for value in message.values]
    match kind := message.WhichOneof("kind"):
        case None | "null_value":
            return unset if kind is None else None
        case "number_value":
            return _number(message.number_value)
        case "struct_value" | "list_value":
            return plain_json(getattr(message, kind), unset=unset)
    return getattr(message, kind)


def _number(value: float) -> float | str:
    odd = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return odd.get(repr(value), value)


def _comparable(value: Any) -> Any:
    match value:
        case bool() | str() | None:
            return value
        case int() | float():
            # json_format writes a negative zero as zero.
            return (float(value) + 0.0).hex()
        case list():
            return [_comparable(item) for item in value]
    return {key: _comparable(item) for key, item in value.items()}
