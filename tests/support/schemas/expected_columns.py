"""A message's expected columns, by Google's library and docs/type-mapping.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDE = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
_NARROW = {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32}
_JSON = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
_WRAPPERS = tuple(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedColumns:
    """`versions` are oldest first."""

    versions: Sequence[Descriptor]
    native: bool

    def of(self, message: Message) -> dict[str, Any]:
        return self._struct(message, self.versions, ())

    def _struct(self, message: Message, versions: Sequence[Descriptor], above: tuple[str, ...]) -> dict[str, Any]:
        own = message.DESCRIPTOR
        row: dict[str, Any] = {}
        for number in sorted({number for version in versions for number in version.fields_by_number}):
            stages = [member for version in versions if (member := version.fields_by_number.get(number))]
            mine = own.fields_by_number.get(number)
            if FieldDescriptor.TYPE_STRING in (types := {stage.type for stage in stages}) and len(types) > 1:
                # A text can't be in the column of what it was before.
                old = mine is not None and mine.type == stages[0].type
                row[f"{stages[0].name}_deleted_N"] = self._field(message, mine, stages, above) if old else None
                row[stages[-1].name] = None if old else self._field(message, mine, stages, above)
            else:
                row[stages[-1].name] = self._field(message, mine, stages, above)
        row["__unrecognized__"] = _unknown(message)
        return row

    def _field(
        self, message: Message, field: FieldDescriptor | None, stages: Sequence[FieldDescriptor], above: tuple[str, ...]
    ) -> Any:
        if field is None:
            return None
        if field.has_presence and not message.HasField(field.name):
            return None
        value = getattr(message, field.name)
        types = [stage.message_type for stage in stages if stage.message_type is not None]
        above = (*above, message.DESCRIPTOR.full_name)
        if types and types[-1].GetOptions().map_entry:
            keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            targets = [item.fields_by_name["value"].message_type for item in types]
            return [(self._one(keys, key, (), above), self._one(values, value[key], targets, above)) for key in value]
        if field.is_repeated:
            return [self._one(field, item, types, above) for item in value]
        return self._one(field, value, types, above)

    def _one(
        self, field: FieldDescriptor, value: Any, types: Sequence[Descriptor | None], above: tuple[str, ...]
    ) -> Any:
        if isinstance(value, Message):
            if self.native and (full := value.DESCRIPTOR.full_name) in (*_NATIVE, *_JSON, *_WRAPPERS):
                return self._native(full, value)
            if value.DESCRIPTOR.full_name in above:
                return {"__unrecognized__": value.SerializeToString(deterministic=True) or None}
            return self._struct(value, [value for value in types if value is not None], above)
        if field.enum_type is not None:
            named = field.enum_type.values_by_number.get(value)
            return str(value) if named is None else named.name
        return self._scalar(field, value)

    def _scalar(self, field: FieldDescriptor, value: Any) -> Any:
        if field.type in _NARROW:
            return value - 2**32 if value >= 2**31 else value
        if field.type in _WIDE:
            return Decimal(value) if self.native else value - 2**64 if value >= 2**63 else value
        return value

    def _native(self, full_name: str, value: Any) -> Any:
        match full_name:
            case "google.protobuf.Timestamp":
                return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
            case "google.protobuf.Duration":
                return value.ToMicroseconds() if abs(value.seconds) < 10**11 else _micros(value)
            case name if name in _JSON:
                return _json(json_format.MessageToDict(value))
            case _:
                return self._scalar(value.DESCRIPTOR.fields_by_name["value"], value.value)


_NATIVE = ("google.protobuf.Timestamp", "google.protobuf.Duration")


def _micros(value: Any) -> int:
    return int(value.seconds) * 1_000_000 + int(value.nanos) // 1_000


def _json(value: Any) -> str:
    return json.dumps(_whole(value), separators=(",", ":"), ensure_ascii=False)


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case Mapping():
            return {key: _whole(item) for key, item in value.items()}
        case _:
            return value


def _unknown(message: Message) -> bytes | None:
    copy = type(message)()
    copy.CopyFrom(message)
    for field, _ in copy.ListFields():
        copy.ClearField(field.name)
    return copy.SerializeToString() or None
