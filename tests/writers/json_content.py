"""What JSON writers are given: random JSON Schemas, and values in the order of their members."""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass
from typing import Any, Final

from tests.writers.cases import Case

SCHEMAS: Final = 200
VALUES: Final = 4
SAFE: Final = 1 << 53
"""JavaScript has no greater whole numbers."""
NAMES: Final = (
    *("id", "customer", "createdAt", "total", "price", "tags", "lines", "sku", "note", "_links", "@type", "$ref"),
    *("is-open", "a.b", "\u00fcber", "\u540d\u524d", "order id", "9lives", "x"),
)
TEXTS: Final = (
    *("", "order-4711", 'say "hi"', "back\\slash", "a/b", "<b>&'=+`", "\u00e9\u00df\u540d", "\U0001f600", "line\nfeed"),
    *("tab\t", "\b\f\r", "\x00\x1f", "\x7f", "\u2028\u2029", "\u0085\u00a0\ufeff"),
)
NUMBERS: Final = (
    0.0,
    1.0,
    0.5,
    19.99,
    1e16,
    1e-5,
    1.5e-7,
    1e21,
    1e22,
    1e100,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    123456.0,
)


@dataclass(frozen=True, slots=True)
class Member:
    """How values have it: always, or else left out or null. Newer members are not in the schema."""

    name: str
    schema: Any
    is_optional: bool = False
    is_null: bool = False
    is_newer: bool = False


@dataclass(frozen=True, slots=True)
class JsonContent:
    choices: random.Random

    def object(self, depth: int) -> tuple[Any, list[Member]]:
        names = self.choices.sample(NAMES, self.choices.randint(1, 5))
        members = [self.member(name, depth - 1) for name in names]
        properties = {member.name: _schema(member.schema) for member in members if not member.is_newer}
        return {"type": "object", "properties": properties}, members

    def member(self, name: str, depth: int) -> Member:
        is_optional = self.choices.random() < 0.3
        return Member(
            name=name,
            schema=self.type(depth),
            is_optional=is_optional,
            is_null=is_optional and self.choices.random() < 0.5,
            is_newer=self.choices.random() < 0.03,
        )

    def type(self, depth: int) -> Any:
        kinds = ["boolean", "integer", "number", "number", "string", "string", "string"]
        kinds += ["object", "object", "list", "list", "map", "any", "several"] * (depth > 0)
        match self.choices.choice(kinds):
            case "object":
                return self.object(depth)
            case "list":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "object", "additionalProperties": self.type(depth - 1)}
            case "any":
                return {}
            case "several":
                return {"type": ["string", "integer", "null"]}
            case kind:
                return {"type": kind}

    def value(self, schema: Any) -> Any:
        match schema:
            case (_, list(members)):
                return self.members(members)
            case {"items": items}:
                return [self.value(items) for _ in range(self.choices.choice([0, 1, 2, 3]))]
            case {"additionalProperties": values}:
                names = sorted({self.text() for _ in range(self.choices.choice([0, 1, 2, 3]))})
                return {name: self.value(values) for name in names}
            case {"type": ["string", "integer", "null"]}:
                return self.choices.choice([None, self.text(), self.integer()])
            case {"type": kind}:
                return self.scalar(kind)
            case _:
                return self.choices.choice([None, self.text(), self.number(), {"any": [1, self.text()]}, [], True])

    def members(self, members: list[Member]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for member in members:
            if not member.is_optional or self.choices.random() < 0.5:
                value[member.name] = self.value(member.schema)
            elif member.is_null:
                value[member.name] = None
        return value

    def scalar(self, kind: str) -> Any:
        match kind:
            case "boolean":
                return self.choices.random() < 0.5
            case "integer":
                return self.integer()
            case "number":
                return self.number()
            case _:
                return self.text()

    def integer(self) -> int:
        return self.choices.choice(
            [0, -1, SAFE - 1, 1 - SAFE, self.choices.randrange(-SAFE, SAFE), self.choices.randint(0, 99)]
        )

    def number(self) -> float:
        price = self.choices.randint(0, 10**6) / 100
        return self.choices.choice([price, price, price, self.choices.uniform(-1e9, 1e9), self.choices.choice(NUMBERS)])

    def text(self) -> str:
        letters = "".join(self.choices.choices(string.ascii_letters, k=self.choices.randint(1, 12)))
        return self.choices.choice([letters, letters, self.choices.choice(TEXTS)])


def _schema(schema: Any) -> Any:
    return (
        schema[0]
        if isinstance(schema, tuple)
        else {key: _schema(part) if key in ("items", "additionalProperties") else part for key, part in schema.items()}
    )


def json_cases() -> list[Case]:
    cases = []
    for seed in range(SCHEMAS):
        content = JsonContent(random.Random(seed))
        schema = content.object(3)
        values = tuple(json.dumps(content.value(schema)).encode() for _ in range(VALUES))
        cases.append(Case(json.dumps(_schema(schema)), values))
    return cases
