"""Types of sampled values, and the JSON Schema that they propose.

Members of an extended schema keep their order and types. A place is typed by all kinds of values sampled there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from schema_mapping.json.kernel.numbers import double_text, text_double, text_styles
from schema_mapping.json.read_schema import LONGEST_NAME
from schema_mapping.json.types import ArrayType, ChoiceType, JsonType, MapType, ObjectType, ScalarType

KINDS: Final = ("boolean", "integer", "number", "string", "array", "object")
MOST_LEVELS: Final = 24
"""Deeper values are JSON text."""
FEW_NAMES: Final = 50
MOST_NAMES: Final = 1_000
SPARSE: Final = 10
"""Names are data if there are more than FEW_NAMES, and an object has fewer than one of SPARSE of them."""
_LONGEST_LONG: Final = 20


class Whole(str):
    """A number without point and exponent."""

    __slots__ = ()


class Fraction(str):
    __slots__ = ()


def parsed(value: bytes) -> Any:
    """Numbers keep their text. Raises ValueError and RecursionError."""
    return json.loads(value.decode(), parse_int=Whole, parse_float=Fraction, parse_constant=_refuse)


def _refuse(literal: str) -> None:
    raise ValueError(f"{literal} isn't JSON")


@dataclass(slots=True)
class SampledType:
    """`declared` are an extended schema's kinds, `before` is the member that preceded it first."""

    counts: Counter[str] = field(default_factory=Counter)
    declared: set[str] = field(default_factory=set)
    members: dict[str, SampledType] = field(default_factory=dict)
    items: SampledType | None = None
    map_values: SampledType | None = None
    doc: str | None = None
    is_open: bool = False
    is_narrow: bool = False
    entries: int = 0
    no_long: int = 0
    no_int: int = 0
    no_double: int = 0
    example: str = ""
    before: str | None = None

    @classmethod
    def of(cls, kind: JsonType, doc: str | None = None) -> SampledType:
        sampled = cls(doc=doc)
        sampled._declare(kind)
        return sampled

    def _declare(self, kind: JsonType) -> None:
        match kind:
            case ScalarType(name):
                self.declared.add("integer" if name == "int" else name)
                self.is_narrow = name == "int"
            case ArrayType(items):
                self.declared.add("array")
                self.items = SampledType.of(items)
            case MapType(values):
                self.declared.add("object")
                self.map_values = SampledType.of(values)
            case ObjectType(members):
                self.declared.add("object")
                self.members = {member.name: SampledType.of(member.type, member.doc) for member in members}
            case ChoiceType(branches):
                for branch in branches:
                    self._declare(branch)
            case _:
                self.is_open = True

    def add(self, value: Any, depth: int = 0) -> None:
        if depth > MOST_LEVELS:
            self.is_open = True
        if self.is_open:
            return
        match value:
            case Whole() | Fraction():
                self._add_number(value)
            case list():
                self._add_items(value, depth)
            case dict():
                self._add_members(value, depth)
            case _:
                kind = "null" if value is None else "boolean" if isinstance(value, bool) else "string"
                self.counts[kind] += 1

    def _add_items(self, values: list[Any], depth: int) -> None:
        self.counts["array"] += 1
        if values and self.items is None:
            self.items = SampledType()
        for item in values:
            assert self.items is not None
            self.items.add(item, depth + 1)

    def _add_members(self, members: dict[str, Any], depth: int) -> None:
        self.counts["object"] += 1
        self.entries += len(members)
        before = None
        for name, value in members.items():
            if self.map_values is not None:
                self.map_values.add(value, depth + 1)
                continue
            member = self.members.get(name)
            if member is None:
                member = self.members[name] = SampledType(before=before)
            before = name
            member.add(value, depth + 1)

    def ordered_names(self) -> list[str]:
        """Declared members keep their order."""
        if "object" in self.declared:
            return list(self.members)
        ordered: list[str] = []
        for name, member in self.members.items():
            if member.before is None:
                ordered.insert(0, name)
            else:
                ordered.insert(ordered.index(member.before) + 1, name)
        return ordered

    def _add_number(self, text: Whole | Fraction) -> None:
        self.counts["integer" if isinstance(text, Whole) else "number"] += 1
        long = int(text) if isinstance(text, Whole) and len(text) <= _LONGEST_LONG else None
        fits_long = long is not None and -(2**63) <= long < 2**63 and text != "-0"
        fits_double = _is_double(text.encode())
        self.no_long += not fits_long
        self.no_int += long is None or not -(2**31) <= long < 2**31
        self.no_double += not fits_double
        if not (fits_double if isinstance(text, Fraction) else fits_long) and not self.example:
            self.example = text if len(text) <= _LONGEST_LONG else f"{text[:_LONGEST_LONG]}..."

    @property
    def kinds(self) -> list[str]:
        """The kinds of its values but null. Any number is a `number`."""
        kinds = [kind for kind in KINDS if self.counts[kind] or kind in self.declared]
        return [kind for kind in kinds if kind != "integer" or "number" not in kinds]

    @property
    def inexact(self) -> int:
        """Numbers that a column of numbers wouldn't give back."""
        if self.is_open:
            return 0
        return self.no_double if "number" in self.kinds else self.no_long if "integer" in self.kinds else 0

    def places(self, path: str = "") -> Iterator[tuple[str, SampledType]]:
        """Paths are as in `lines[].sku`; of maps only the values together."""
        yield path, self
        if self.is_open:
            return
        if self.items is not None:
            yield from self.items.places(f"{path}[]")
        if (values := self.values_of_map()) is not None:
            yield from values.places(f"{path}{{}}")
        elif not self.is_too_wide():
            for name, member in self.members.items():
                yield from member.places(f"{path}.{name}" if path else name)

    def values_of_map(self) -> SampledType | None:
        """None for an object with members."""
        if self.map_values is None and "object" not in self.declared and self._has_many_names():
            together = SampledType()
            for member in self.members.values():
                together.merge(member)
            if len(together.kinds) == 1 and together.schema() is not None:
                self.map_values = together
        return self.map_values

    def is_too_wide(self) -> bool:
        """Its names are data, and its values aren't alike."""
        return "object" not in self.declared and len(self.members) > MOST_NAMES and self.values_of_map() is None

    def _has_many_names(self) -> bool:
        names, objects = len(self.members), max(self.counts["object"], 1)
        return names > MOST_NAMES or (names > FEW_NAMES and self.entries * SPARSE < names * objects)

    def merge(self, other: SampledType) -> None:
        self.counts += other.counts
        self.declared |= other.declared
        self.is_open |= other.is_open
        self.entries += other.entries
        self.no_long, self.no_int = self.no_long + other.no_long, self.no_int + other.no_int
        self.no_double, self.example = self.no_double + other.no_double, self.example or other.example
        if other.items is not None:
            self.items = self.items or SampledType()
            self.items.merge(other.items)
        for name, member in other.members.items():
            self.members.setdefault(name, SampledType(before=member.before)).merge(member)

    def schema(self) -> dict[str, Any] | None:
        """None if only null, [] and {} were sampled."""
        doc = {"description": self.doc} if self.doc else {}
        kinds = self.kinds
        parts = {kind: self._part(kind) for kind in kinds}
        typed = {kind: part for kind, part in parts.items() if part is not None}
        if not typed and not self.is_open:
            return None
        if self.is_open or len(typed) < len(parts) or self.is_too_wide():
            return doc
        names = [*kinds, *(["null"] if self.counts["null"] else [])]
        schema: dict[str, Any] = {"type": names[0] if len(names) == 1 else names, **doc}
        for part in typed.values():
            schema |= part
        return schema

    def _part(self, kind: str) -> dict[str, Any] | None:
        if kind == "integer":
            return {"connect.type": "int32"} if self.is_narrow and not self.no_int else {}
        if kind == "array":
            items = None if self.items is None else self.items.schema()
            return None if items is None else {"items": items}
        if kind == "object":
            if (values := self.values_of_map()) is not None:
                part = values.schema()
                return {} if part is None else {"additionalProperties": part}
            if self.is_too_wide():  # ordering the names would take time in the square of their number
                has_type = any(member.schema() is not None for name, member in self.members.items() if _is_name(name))
                return {} if has_type else None
            members = {name: self.members[name].schema() for name in self.ordered_names() if _is_name(name)}
            properties = {name: part for name, part in members.items() if part is not None}
            return {"properties": properties} if properties else None
        return {}


def _is_double(text: bytes) -> bool:
    """Whether a double in one of the styles of writers is this text."""
    styles, value = text_styles(text), text_double(text)
    if value is None or value - value != 0:
        return False
    return any(styles >> style & 1 and double_text(value, style) == text for style in range(styles.bit_length()))


def _is_name(name: str) -> bool:
    try:
        return len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False
