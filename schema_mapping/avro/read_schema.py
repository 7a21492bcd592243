"""Reads Avro schemas, as leniently as readers in other languages.

Names may have any characters; misplaced logical types are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from schema_mapping.avro.types import (
    LOGICAL_OF,
    NULL,
    PRIMITIVES,
    ArrayOf,
    AvroType,
    AvroTypes,
    DecimalBytes,
    DecimalDigits,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    RecordField,
    RecordName,
    RecordType,
    UnionOf,
    type_name,
)
from schema_mapping.columns.types import MAX_PRECISION
from schema_mapping.errors import DescriptorError

UUID_BYTES: Final = 16
MOST_BYTES: Final = 2**31 - 1
RECORDS: Final = ("record", "error")
MOST_DEPTH: Final = 100
"""How many types may lie in each other. Recursion over a schema that was read stays far from Python's limit."""
MOST_NESTED: Final = 40
"""How many arrays and maps may lie in each other. Parquet's readers refuse files with more than 100 levels."""


def read_types(text: str, references: Iterable[str] = ()) -> AvroTypes:
    """`references` may be in any order. Raises DescriptorError for a bad text or an undefined type."""
    reading = _SchemaText()
    try:
        reading.define(references)
        root = reading.type(_parsed(text), "")
    except RecursionError:
        raise DescriptorError("the Avro schema is nested too deeply", most=MOST_DEPTH) from None
    return AvroTypes(root=root, records=_reached(root, reading.records))


def _parsed(text: str) -> Any:
    try:
        parsed = json.loads(text)
        json.dumps(parsed, ensure_ascii=False).encode()
    except ValueError as error:  # UnicodeError too: names have to be written to files
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise DescriptorError(f"the Avro schema isn't JSON that can be kept: {error}") from error
    return parsed


class _UndefinedName(Exception): ...


class _SchemaText:
    def __init__(self) -> None:
        self._depth = 0
        self._nested = 0
        self.records: dict[str, RecordType] = {}
        self._named: dict[str, AvroType] = {}

    def define(self, references: Iterable[str]) -> None:
        """Read each reference after the ones that it needs."""
        waiting = [_parsed(text) for text in references]
        while waiting:
            left = []
            for schema in waiting:
                kept = dict(self.records), dict(self._named)
                try:
                    self._type(schema, "")
                except _UndefinedName:
                    self.records, self._named = kept
                    left.append(schema)
            if len(left) == len(waiting):
                self.type(left[0], "")
            waiting = left

    def type(self, schema: Any, namespace: str) -> AvroType:
        try:
            return self._type(schema, namespace)
        except _UndefinedName as error:
            raise DescriptorError(
                "the Avro schema uses a type that neither it nor its references define", type=str(error)
            ) from None

    def _type(self, schema: Any, namespace: str) -> AvroType:
        self._depth += 1
        try:
            if self._depth > MOST_DEPTH:
                raise DescriptorError("the Avro schema is nested too deeply", most=MOST_DEPTH)
            return self._matched(schema, namespace)
        finally:
            self._depth -= 1

    def _matched(self, schema: Any, namespace: str) -> AvroType:
        match schema:
            case str():
                return self._by_name(schema, namespace)
            case list():
                return self._union(schema, namespace)
            case {"type": str() as kind}:
                return self._declared(kind, schema, namespace)
            case {"type": inner}:
                return self._type(inner, namespace)
            case _:
                raise DescriptorError("a type of the Avro schema is neither a name nor an object", found=_short(schema))

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return PrimitiveType(name)
        for candidate in (name,) if "." in name else (_full(name, namespace), name):
            if candidate.removeprefix(".") in self._named:
                return self._named[candidate.removeprefix(".")]
        raise _UndefinedName(name)

    def _union(self, schema: list[Any], namespace: str) -> AvroType:
        branches = tuple(self._type(branch, namespace) for branch in schema)
        names = [type_name(branch) for branch in branches]
        if not branches or len(set(names)) < len(names) or "union" in names:
            raise DescriptorError(
                "a union of the Avro schema needs branches of different types, and no union among them", branches=names
            )
        return UnionOf(branches)

    def _declared(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        if kind in PRIMITIVES:
            return _primitive(PrimitiveType(kind), schema)
        match kind:
            case "array":
                return ArrayOf(self._inner(_member(schema, "items"), namespace))
            case "map":
                return MapOfValues(self._inner(_member(schema, "values"), namespace))
            case "enum" | "fixed" | "record" | "error":
                return self._define(kind, schema, namespace)
            case _:
                return self._by_name(kind, namespace)

    def _inner(self, schema: Any, namespace: str) -> AvroType:
        """Raises DescriptorError if columns would nest deeper than Parquet readers allow."""
        self._nested += 1
        try:
            if self._nested > MOST_NESTED:
                raise DescriptorError("the Avro schema nests too many arrays and maps in each other", most=MOST_NESTED)
            return self._type(schema, namespace)
        finally:
            self._nested -= 1

    def _define(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        name = _name_of(schema, namespace)
        space = name.rpartition(".")[0]
        if name in self._named:
            raise DescriptorError("the Avro schema defines a type twice", type=name)
        if name in PRIMITIVES:
            raise DescriptorError("the Avro schema gives a type the name of a primitive", type=name)
        aliases = tuple(_full(alias, space) for alias in _texts(schema, "aliases"))
        if kind == "enum":
            self._named[name] = _enum(name, aliases, schema)
        elif kind == "fixed":
            self._named[name] = _fixed(name, aliases, schema)
        else:
            self._named[name] = RecordName(name)
            fields = tuple(self._field(field, name, space) for field in _items(schema, "fields"))
            if len({field.name for field in fields}) < len(fields):
                raise DescriptorError("a record of the Avro schema has two fields of one name", record=name)
            self.records[name] = RecordType(name=name, fields=fields, aliases=aliases)
        return self._named[name]

    def _field(self, schema: Any, record: str, namespace: str) -> RecordField:
        if not isinstance(schema, Mapping) or not isinstance(schema.get("name"), str) or not schema["name"]:
            raise DescriptorError("a field of the Avro schema has no name", record=record)
        if "type" not in schema:
            raise DescriptorError("a field of the Avro schema has no type", record=record, field=schema["name"])
        doc = schema.get("doc")
        return RecordField(
            name=schema["name"],
            type=self._type(schema["type"], namespace),
            aliases=_texts(schema, "aliases"),
            doc=doc if isinstance(doc, str) else None,
        )


def _primitive(kind: PrimitiveType, schema: Mapping[str, Any]) -> AvroType:
    logical = schema.get("logicalType")
    if logical in LOGICAL_OF.get(kind.kind, ()):
        return replace(kind, logical=logical)
    digits = _digits(schema) if kind.kind == "bytes" else None
    return kind if digits is None else DecimalBytes(digits)


def _digits(schema: Mapping[str, Any], size: int | None = None) -> DecimalDigits | None:
    """None if they are malformed or too many for a column."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        return None
    if size is not None and 10**precision > 2 ** (8 * size - 1):
        return None
    return DecimalDigits(precision, scale)


def _enum(name: str, aliases: tuple[str, ...], schema: Mapping[str, Any]) -> EnumSymbols:
    symbols = _texts(schema, "symbols")
    if not symbols or len(set(symbols)) < len(symbols):
        raise DescriptorError("an enum of the Avro schema needs symbols, each once", enum=name)
    return EnumSymbols(name, symbols, aliases)


def _fixed(name: str, aliases: tuple[str, ...], schema: Mapping[str, Any]) -> FixedBytes:
    size = schema.get("size")
    if type(size) is not int or not 1 <= size <= MOST_BYTES:
        raise DescriptorError("a fixed type of the Avro schema has at least one byte", fixed=name, size=size)
    is_uuid = size == UUID_BYTES and schema.get("logicalType") == "uuid"
    return FixedBytes(name, size, aliases, _digits(schema, size), is_uuid)


def _name_of(schema: Mapping[str, Any], namespace: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str) or not name.strip("."):
        raise DescriptorError("a type of the Avro schema has no name", type=schema["type"])
    inner = schema.get("namespace")
    return _full(name, inner if isinstance(inner, str) else namespace)


def _full(name: str, namespace: str) -> str:
    return name.removeprefix(".") if "." in name or not namespace else f"{namespace}.{name}"


def _member(schema: Mapping[str, Any], name: str) -> Any:
    if name not in schema:
        raise DescriptorError(f"a type of the Avro schema lacks `{name}`", type=schema["type"])
    return schema[name]


def _items(schema: Mapping[str, Any], name: str) -> list[Any]:
    items = _member(schema, name)
    if not isinstance(items, list):
        raise DescriptorError(f"`{name}` of a type of the Avro schema isn't a list", type=schema["type"])
    return items


def _texts(schema: Mapping[str, Any], name: str) -> tuple[str, ...]:
    names = schema.get(name) or []
    if not isinstance(names, list) or not all(isinstance(text, str) for text in names):
        raise DescriptorError(f"`{name}` of the Avro schema isn't a list of names", found=_short(names))
    return tuple(names)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - one line


def _reached(root: AvroType, records: Mapping[str, RecordType]) -> dict[str, RecordType]:
    """In order of first use."""
    reached: dict[str, RecordType] = {}
    waiting = [root]
    while waiting:
        match waiting.pop():
            case RecordName(name) if name not in reached:
                reached[name] = records[name]
                waiting.extend(field.type for field in reversed(reached[name].fields))
            case ArrayOf(inner) | MapOfValues(inner):
                waiting.append(inner)
            case UnionOf(branches):
                waiting.extend(branch for branch in reversed(branches) if branch != NULL)
            case _:
                pass
    return reached
