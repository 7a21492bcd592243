"""The same orders as Protobuf, Avro and compact JSON, with the schema of each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import fastavro
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass

from values.orders import STATUS, order_type

Format: TypeAlias = Literal["protobuf", "avro", "json"]
FILES: Final[Mapping[Format, str]] = {"protobuf": "shop.binpb", "avro": "order.avsc", "json": "order.schema.json"}


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def members(**types: Any) -> dict[str, Any]:
    return {"type": "object", "properties": types}


ADDRESS: Final = {"street": "string", "city": "string", "zip": "string", "country": "string"}
AVRO: Final = record(
    "Order",
    id="long",
    number="string",
    status={"type": "enum", "name": "Status", "symbols": list(STATUS)},
    customer=record(
        "Customer",
        id="long",
        name="string",
        email="string",
        address=record("Address", **ADDRESS, lat="double", lon="double"),
        vip="boolean",
    ),
    lines={"type": "array", "items": record("Line", sku="string", quantity="int", cents="long", discount="double")},
    labels={"type": "map", "values": "string"},
    created="long",
    total="long",
    note="string",
    paid="boolean",
    points={"type": "array", "items": "int"},
)
TEXT, NUMBER, WHOLE, YES_NO = ({"type": kind} for kind in ("string", "number", "integer", "boolean"))
JSON: Final = members(
    id=WHOLE,
    number=TEXT,
    status={"enum": list(STATUS)},
    created=WHOLE,
    total=WHOLE,
    note=TEXT,
    paid=YES_NO,
    points={"type": "array", "items": WHOLE},
    labels={"type": "object", "additionalProperties": TEXT},
    lines={"type": "array", "items": members(sku=TEXT, quantity=WHOLE, cents=WHOLE, discount=NUMBER)},
    customer=members(
        id=WHOLE,
        name=TEXT,
        email=TEXT,
        vip=YES_NO,
        address=members(**dict.fromkeys(ADDRESS, TEXT), lat=NUMBER, lon=NUMBER),
    ),
)


def writer_of(format_: Format) -> Callable[[dict[str, Any]], bytes]:
    match format_:
        case "protobuf":
            kind = GetMessageClass(order_type())
            return lambda values: bytes(kind(**values).SerializeToString())
        case "avro":
            return _avro_writer()
        case "json":
            return lambda values: json.dumps(_named(values), separators=(",", ":")).encode()


def _avro_writer() -> Callable[[dict[str, Any]], bytes]:
    schema = fastavro.parse_schema(AVRO)

    def write(values: dict[str, Any]) -> bytes:
        output = io.BytesIO()
        fastavro.schemaless_writer(output, schema, _named(values))
        return output.getvalue()

    return write


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "status": STATUS[values["status"]]}


def schema_text(format_: Format) -> bytes:
    """Return what a schema file of the format has."""
    if format_ == "protobuf":
        descriptors = FileDescriptorSet()
        order_type().file.CopyToProto(descriptors.file.add())
        return descriptors.SerializeToString()
    return json.dumps(AVRO if format_ == "avro" else JSON).encode()


def section(format_: Format, file: str) -> dict[str, str]:
    """Return a topic's `value` section."""
    if format_ == "protobuf":
        return {"format": "protobuf", "message": "shop.Order", "descriptors": file}
    return {"format": format_, "schema": file}
