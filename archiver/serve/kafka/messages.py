"""Answers of any version from one set of values."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.protocol import RequestPayload, ResponsePayload

Values: TypeAlias = Mapping[str, Any]
"""The fields of a message by kio's names. Structures are Values again, arrays are sequences, times are milliseconds."""

_ABSENT: Final = object()


@cache
def request_kind(api_key: int, version: int) -> type[RequestPayload]:
    return load_request_schema(api_key, version)


@cache
def response_kind(api_key: int, version: int) -> type[ResponsePayload]:
    return load_response_schema(api_key, version)


def answer(api_key: int, version: int, values: Values) -> Any:
    return _entity(response_kind(api_key, version), values)


def encoded(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def _entity(kind: Any, values: Values) -> Any:
    made = {}
    for field, inner in _fields(kind):
        value = values.get(field.name, _ABSENT)
        if value is not _ABSENT:
            made[field.name] = _value(field, inner, value)
        elif field.default is MISSING:
            made[field.name] = _missing(field, kind)
    return kind(**made)


def _value(field: Field[Any], inner: type[Any] | None, value: Any) -> Any:
    if inner is not None and value is not None:
        if isinstance(value, Mapping):
            return _entity(inner, value)
        return tuple(_entity(inner, element) for element in value)
    match field.metadata.get("kafka_type"):
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "error_code":
            return ErrorCode(value)
        case _:
            return tuple(value) if isinstance(value, list) else value


def _missing(field: Field[Any], kind: Any) -> Any:
    if field.name == "throttle_time":
        return timedelta(0)
    raise KeyError(f"{kind.__module__}.{kind.__qualname__} needs {field.name}")


@cache
def _fields(kind: Any) -> tuple[tuple[Field[Any], type[Any] | None], ...]:
    return tuple((field, _structure(field.type)) for field in fields(kind))


def _structure(kind: Any) -> type[Any] | None:
    if isinstance(kind, type) and is_dataclass(kind):
        return kind
    inner = [argument for argument in get_args(kind) if argument not in (NoneType, ...)]
    return _structure(inner[0]) if inner else None
