"""What Avro writers are given: random schemas, and values as fastavro writes them. Equal seeds give equal content."""

from __future__ import annotations

import json
import random
import string
import struct
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.schemas.strategies_avro import written
from tests.writers.cases import Case

SCHEMAS: Final = 200
VALUES: Final = 4
LONG_LIST: Final = 230
"""Items of a list that Go's hamba writes as three blocks."""
LIMITS: Final = {"int": 31, "long": 63}
DOUBLES: Final = (0.0, -0.0, 1.0, 0.1, 1e16, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"))
TEXTS: Final = ("", "a", "order-4711", "\u00e9\u00df", "\u65e5\u672c", "\U0001f600", "a\0b", "x" * 130)
DAY: Final = 86_400
LOGICAL: Final[tuple[tuple[str, str, int, int], ...]] = (
    ("int", "date", -700_000, 2_900_000),
    ("int", "time-millis", 0, DAY * 1_000 - 1),
    ("long", "time-micros", 0, DAY * 1_000_000 - 1),
    ("long", "timestamp-millis", -62_000_000_000_000, 253_000_000_000_000),
    ("long", "timestamp-micros", -62_000_000_000_000_000, 253_000_000_000_000_000),
    ("long", "local-timestamp-millis", -62_000_000_000_000, 253_000_000_000_000),
    ("long", "local-timestamp-micros", -62_000_000_000_000_000, 253_000_000_000_000_000),
)


@dataclass(slots=True)
class AvroContent:
    """One schema, and values for it. Every second schema has no logical types: some libraries convert them."""

    choices: random.Random
    has_logical: bool
    names: int = 0
    types: dict[str, dict[str, Any]] = field(default_factory=dict)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def record(self, depth: int) -> dict[str, Any]:
        name = self.name("Record")
        fields = [self.field(number, depth - 1) for number in range(self.choices.randint(1, 5))]
        if self.choices.random() < 0.1:
            fields.append({"name": "parent", "type": ["null", name]})
        return self.known({"type": "record", "name": name, "fields": fields})

    def field(self, number: int, depth: int) -> dict[str, Any]:
        kind = self.type(depth)
        more: dict[str, Any] = {"doc": "a field"} if self.choices.random() < 0.1 else {}
        if isinstance(kind, list) and kind[0] == "null":
            more["default"] = None
        return {"name": f"f{number}", "type": kind, **more}

    def known(self, schema: dict[str, Any]) -> dict[str, Any]:
        self.types[schema["name"]] = schema
        return schema

    def type(self, depth: int) -> Any:  # noqa: PLR0911 - a table of types
        kinds = ["scalar"] * 5 + ["enum", "fixed", "again"] + ["logical"] * 3 * self.has_logical
        kinds += (["array", "map", "record"] + ["nullable"] * 3 + ["union"]) * (depth > 0)
        match self.choices.choice(kinds):
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "map", "values": self.type(depth - 1)}
            case "record":
                return self.record(depth)
            case "nullable":
                return self.nullable(self.type(depth - 1))
            case "union":
                return self.union(depth)
            case "logical":
                return self.logical()
            case kind:
                return self.leaf(kind)

    def leaf(self, kind: str) -> Any:
        named = [name for name, schema in self.types.items() if schema["type"] != "record"]
        if kind == "again" and named:
            return self.choices.choice(named)
        if kind == "enum":
            symbols = ["OPEN", "PAID", "SENT_BACK"][: self.choices.randint(1, 3)]
            return self.known({"type": "enum", "name": self.name("Enum"), "symbols": symbols})
        if kind == "fixed":
            return self.known({"type": "fixed", "name": self.name("Fixed"), "size": self.choices.randint(1, 20)})
        return self.choices.choice(["boolean", "int", "long", "float", "double", "string", "bytes"])

    def nullable(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return kind
        return ["null", kind] if self.choices.random() < 0.8 else [kind, "null"]

    def union(self, depth: int) -> list[Any]:
        branches = [*self.choices.sample(["string", "long", "double", "boolean"], 2), self.record(depth - 1)]
        if self.choices.random() < 0.5:
            branches.append("null")
        self.choices.shuffle(branches)
        return branches

    def logical(self) -> dict[str, Any]:
        number = self.choices.randrange(len(LOGICAL) + 3)
        if number < len(LOGICAL):
            kind, name, *_ = LOGICAL[number]
            return {"type": kind, "logicalType": name}
        if number == len(LOGICAL):
            return {"type": "string", "logicalType": "uuid"}
        decimal = {"logicalType": "decimal", "precision": self.choices.choice([4, 9, 18, 38]), "scale": 2}
        if number == len(LOGICAL) + 1:
            return {"type": "bytes", **decimal}
        return self.known({"type": "fixed", "name": self.name("Money"), "size": 16, **decimal})

    def value(self, schema: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - a table of types
        match schema:
            case list():
                return self.branch(schema, depth)
            case {"type": "record", "fields": fields}:
                return {entry["name"]: self.value(entry["type"], depth + 1) for entry in fields}
            case {"type": "array", "items": items}:
                return [self.value(items, depth + 1) for _ in range(self.size(depth))]
            case {"type": "map", "values": values}:
                return {f"{self.text()}{number}": self.value(values, depth + 1) for number in range(self.size(depth))}
            case {"logicalType": name}:
                return self.annotated(schema, name)
            case {"type": "enum", "symbols": symbols}:
                return self.choices.choice(symbols)
            case {"type": "fixed", "size": size}:
                return self.choices.randbytes(size)
            case str() if schema in self.types:
                return self.value(self.types[schema], depth)
            case _:
                return self.scalar(schema)

    def size(self, depth: int) -> int:
        if depth == 1 and self.choices.random() < 0.02:
            return LONG_LIST
        return self.choices.choice([0, 1, 2, 3])

    def branch(self, branches: list[Any], depth: int) -> Any:
        rest = [branch for branch in branches if branch != "null"]
        if "null" in branches and (depth > 4 or self.choices.random() < 0.3):
            return None
        branch = self.choices.choice(rest)
        value = self.value(branch, depth + 1)
        if len(rest) == 1:
            return value
        return (branch["name"] if isinstance(branch, dict) else branch, value)

    def annotated(self, schema: dict[str, Any], name: str) -> Any:
        if name == "uuid":
            digits = self.choices.randbytes(16).hex()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        if name == "decimal":
            most = 10 ** self.choices.randint(0, schema["precision"]) - 1
            number = self.choices.randint(-most, most)
            bits = (number if number >= 0 else ~number).bit_length()
            return number.to_bytes(schema.get("size", bits // 8 + 1), "big", signed=True)
        (bounds,) = (entry[2:] for entry in LOGICAL if entry[1] == name)
        return self.choices.randint(*bounds)

    def scalar(self, kind: str) -> Any:
        match kind:
            case "boolean":
                return self.choices.random() < 0.5
            case "int" | "long":
                most = 1 << self.choices.choice([3, 7, 13, 20, LIMITS[kind]])
                return self.choices.choice([-most, most - 1, self.choices.randrange(-most, most)])
            case "float":
                return struct.unpack("<f", struct.pack("<f", self.choices.choice([0.0, -0.0, 1.5, 0.1, 3e38, 1e-40])))[
                    0
                ]
            case "double":
                return self.choices.choice([*DOUBLES, self.choices.uniform(-1e6, 1e6)])
            case "string":
                return self.text()
            case _:
                return self.choices.randbytes(self.choices.choice([0, 1, 7, 20]))

    def text(self) -> str:
        random_text = "".join(self.choices.choices(string.ascii_letters, k=self.choices.randint(0, 12)))
        return self.choices.choice([*TEXTS, random_text, random_text, random_text])


def avro_cases() -> list[Case]:
    cases = []
    for seed in range(SCHEMAS):
        content = AvroContent(random.Random(seed), has_logical=seed % 2 == 1)
        schema = content.record(3)
        values = tuple(written(schema, content.value(schema)) for _ in range(VALUES))
        cases.append(Case(json.dumps(schema), values))
    return cases
