"""Messages as canonical Protobuf JSON, by their rows' schema.

Messages without a JSON form keep their bytes, with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import names
from schema_mapping.protobuf.descriptors import SourceSchema, find_descriptor, parse_descriptor_set
from schema_mapping.protobuf.json_names import with_own_names
from schema_mapping.value_format import SHOWN_FIELDS

_UNSHOWABLE: Final = (json_format.Error, TypeError, ValueError, OverflowError, RecursionError)
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def shown_messages(
    schemas: Sequence[SourceSchema], values: pa.BinaryArray, rows: pa.StructArray, which: Sequence[int | None]
) -> pa.StructArray:
    shown = _shown(schemas, values, rows, which)
    return pa.array(shown, pa.struct([pa.field(name, pa.string()) for name in SHOWN_FIELDS]))


def _shown(
    schemas: Sequence[SourceSchema], values: pa.BinaryArray, rows: pa.StructArray, which: Sequence[int | None]
) -> Iterator[tuple[str | None, str | None, str | None] | None]:
    errors, prefixes = (rows.field(name).to_pylist() for name in (names.ERR, names.PREFIX))
    for value, error, prefix, index in zip(values.to_pylist(), errors, prefixes, which, strict=True):
        if value is None:
            yield None
        elif error is not None or index is None:
            yield None, None, f"not decoded: {error or 'no message'}"
        else:
            schema = schemas[index]
            try:
                yield schema.message, as_json(schema, value[len(prefix or b"") :]), None
            except DecodeError as failure:
                yield None, None, f"not decoded: {failure}"
            except _UNSHOWABLE as failure:
                yield None, None, f"no JSON form: {failure}"


def as_json(schema: SourceSchema, data: bytes) -> str:
    """Raises google.protobuf's errors if there is no JSON form."""
    message = _message_class(schema)()
    message.ParseFromString(data)
    pool: Any = message.DESCRIPTOR.file.pool
    message_dict = json_format.MessageToDict(message, descriptor_pool=pool)
    return _encode(message_dict)


@lru_cache(maxsize=64)
def _message_class(schema: SourceSchema) -> type[Message]:
    files = (with_own_names(file) for file in parse_descriptor_set(schema.descriptor_set).file)
    named = FileDescriptorSet(file=files).SerializeToString()
    message: Any = GetMessageClass(find_descriptor(replace(schema, descriptor_set=named)))
    return message  # type: ignore[no-any-return]
