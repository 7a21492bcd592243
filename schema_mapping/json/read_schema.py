"""Reads JSON Schemas of drafts 4 to 2020-12 as types.

Types don't say `minLength`. A schema that no column can express (`{}`, tuples, recursion, branches that begin alike) is
any JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from schema_mapping.errors import DescriptorError
from schema_mapping.json.types import (
    ANY,
    ArrayType,
    ChoiceType,
    JsonMember,
    JsonType,
    MapType,
    ObjectType,
    ScalarType,
    branch_name,
)

MOST_DEPTH: Final = 64
MOST_TYPES: Final = 20_000
LONGEST_NAME: Final = 255

_KEYWORDS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("properties", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems"),
    "string": ("pattern", "minLength", "maxLength", "contentEncoding"),
    "number": ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
_NARROW: Final = ("int8", "int16", "int32")


def read_document(text: str, name: str = "the schema") -> Any:
    """Raises DescriptorError if it is no JSON Schema."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DescriptorError(f"{name} isn't JSON: {error}") from None
    if not isinstance(document, dict | bool):
        raise DescriptorError(f"{name} isn't a JSON Schema: it is neither an object nor true or false")
    return document


def read_type(document: Any, references: Mapping[str, Any] | None = None) -> JsonType:
    """`references` are documents by the names in `$ref`. Raises DescriptorError if a target is missing."""
    reader = _SchemaReader(document, references or {})
    try:
        return reader.type(document, document, (), 0)
    except RecursionError:
        raise DescriptorError("the JSON Schema is nested too deeply") from None


@dataclass(slots=True)
class _SchemaReader:
    root: Any
    references: Mapping[str, Any]
    count: int = 0
    merges: int = 0
    identified: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for document in (self.root, *self.references.values()):
            self.identified |= dict(_identified(document))

    def type(self, schema: Any, document: Any, above: tuple[int, ...], depth: int) -> JsonType:
        """`document` contains the schema; `above` are the referred schemas around it."""
        self.count += 1
        if not isinstance(schema, dict) or depth > MOST_DEPTH or self.count > MOST_TYPES:
            return ANY
        if "$ref" in schema:
            target, document = self._referred(str(schema["$ref"]), document)
            if id(target) in above:
                return ANY
            return self.type(target, document, (*above, id(target)), depth + 1)
        if schema.get("allOf"):
            schema = self._merged(schema, document)
        kinds = [kind for kind in _kinds(schema) if kind != "null"]
        branches = schema.get("oneOf") or schema.get("anyOf")
        if branches and not kinds and not any(word in schema for word in _KEYWORDS_OF["object"]):
            return self._branches(branches, document, above, depth)
        if not kinds:
            return ANY
        if "integer" in kinds and "number" in kinds:
            kinds.remove("integer")
        types = [self._plain(kind, schema, document, above, depth) for kind in kinds]
        return types[0] if len(types) == 1 else _choice(types)

    def _plain(  # noqa: PLR0911 - a table of types
        self, kind: str, schema: Mapping[str, Any], document: Any, above: tuple[int, ...], depth: int
    ) -> JsonType:
        match kind:
            case "object":
                return self._object(schema, document, above, depth)
            case "array":
                items = schema.get("items")
                if not isinstance(items, dict) or schema.get("prefixItems"):
                    return ANY
                return ArrayType(self.type(items, document, above, depth + 1))
            case "integer":
                return ScalarType("int" if schema.get("connect.type") in _NARROW else "integer")
            case "boolean":
                return ScalarType("boolean")
            case "number":
                return ScalarType("number")
            case "string":
                return ScalarType("string")
            case _:
                return ANY

    def _object(self, schema: Mapping[str, Any], document: Any, above: tuple[int, ...], depth: int) -> JsonType:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            members = tuple(
                JsonMember(name, self.type(part, document, above, depth + 1), _doc(part))
                for name, part in properties.items()
                if part is not False and len(name.encode("utf-8", "surrogatepass")) <= LONGEST_NAME and _is_text(name)
            )
            return ObjectType(members)
        more, patterns = schema.get("additionalProperties"), schema.get("patternProperties")
        values = more if isinstance(more, dict) and more else None
        if isinstance(patterns, dict) and len(patterns) == 1 and values is None:
            (values,) = patterns.values()
        if isinstance(values, dict) and values and not (patterns and isinstance(more, dict) and more):
            return MapType(self.type(values, document, above, depth + 1))
        return ANY

    def _branches(self, branches: Any, document: Any, above: tuple[int, ...], depth: int) -> JsonType:
        if not isinstance(branches, list):
            return ANY
        types = [
            self.type(branch, document, above, depth + 1)
            for branch in branches
            if not (isinstance(branch, dict) and _kinds(branch) == ["null"])
        ]
        flat = [part for kind in types for part in (kind.branches if isinstance(kind, ChoiceType) else (kind,))]
        return _choice(flat)

    def _merged(self, schema: Mapping[str, Any], document: Any, depth: int = 0) -> dict[str, Any]:
        """The schema itself counts first. Properties come together."""
        own = {key: value for key, value in schema.items() if key != "allOf"}
        parts = schema["allOf"]
        self.merges += 1
        if not isinstance(parts, list) or depth > MOST_DEPTH or self.merges > MOST_TYPES:
            return own
        merged: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for part in parts:
            inside = document
            steps = 0
            while isinstance(part, dict) and "$ref" in part and steps < MOST_DEPTH:
                part, inside = self._referred(str(part["$ref"]), inside)  # noqa: PLW2901
                steps += 1
            if not isinstance(part, dict) or "$ref" in part:
                continue
            if inside is not document and json.dumps(part).find('"$ref"') >= 0:
                continue  # its references belong to another document: what it has is kept as unknown members
            flat = self._merged(part, inside, depth + 1) if part.get("allOf") else part
            properties = {**properties, **{k: v for k, v in _properties(flat).items() if k not in properties}}
            merged = {**flat, **merged}
        properties |= _properties(own)
        return {**merged, **own, **({"properties": properties} if properties else {})}

    def _referred(self, reference: str, document: Any) -> tuple[Any, Any]:
        name, _, fragment = reference.partition("#")
        if name:
            target = self.references.get(name, self.identified.get(name))
            if target is None:
                target = self.references.get(name.rpartition("/")[2])
            if target is None:
                raise DescriptorError(
                    "a reference of the JSON Schema leads to a document that isn't there", reference=reference
                )
            document = target
        if not fragment:
            return document, document
        if not fragment.startswith("/"):
            if f"#{fragment}" in self.identified:
                return self.identified[f"#{fragment}"], document
            raise DescriptorError("a reference of the JSON Schema has no target", reference=reference)
        target = document
        for part in fragment[1:].split("/"):
            step = unquote(part).replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(step)] if isinstance(target, list) else target[step]
            except (KeyError, IndexError, ValueError, TypeError):
                raise DescriptorError("a reference of the JSON Schema has no target", reference=reference) from None
        return target, document


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    if isinstance(kinds, list):
        return list(dict.fromkeys(kind for kind in kinds if isinstance(kind, str)))
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    if values:
        return list(dict.fromkeys(map(_kind_of, values)))
    return [kind for kind, words in _KEYWORDS_OF.items() if any(word in schema for word in words)][:1]


def _kind_of(value: Any) -> str:  # noqa: PLR0911 - a table of types
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _choice(types: Sequence[JsonType]) -> JsonType:
    """Return the type itself, a choice by the first byte, or any JSON."""
    distinct = list(dict.fromkeys(types))
    if ScalarType("number") in distinct:
        distinct = [kind for kind in distinct if kind not in (ScalarType("integer"), ScalarType("int"))]
    objects = [kind for kind in distinct if isinstance(kind, ObjectType)]
    if len(objects) > 1 and (joined := _joined(objects)) is not None:
        distinct = [joined if kind is objects[0] else kind for kind in distinct if kind not in objects[1:]]
    if len(distinct) == 1:
        return distinct[0]
    if not distinct or ANY in distinct or len({branch_name(kind) for kind in distinct}) < len(distinct):
        return ANY
    return ChoiceType(tuple(distinct))


def _joined(objects: Sequence[ObjectType]) -> ObjectType | None:
    """None if two objects have a member of different types."""
    members: dict[str, JsonMember] = {}
    for kind in objects:
        for member in kind.members:
            if members.setdefault(member.name, member).type != member.type:
                return None
    return ObjectType(tuple(members.values()))


def _identified(schema: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield parts with an id or an anchor."""
    if depth > MOST_DEPTH:
        return
    if isinstance(schema, dict):
        for word in ("$id", "id"):
            if isinstance(schema.get(word), str):
                yield schema[word].removesuffix("#") or "#", schema
        if isinstance(schema.get("$anchor"), str):
            yield f"#{schema['$anchor']}", schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _identified(part, depth + 1)


def _doc(schema: Any) -> str | None:
    text = schema.get("description") if isinstance(schema, dict) else None
    return text if isinstance(text, str) else None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
