"""Iceberg's table properties for bloom filters.

Properties name columns, which may be renamed: values here are by field id.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyiceberg.schema import Schema

ENABLED: Final = "write.parquet.bloom-filter-enabled.column."
RATE: Final = "write.parquet.bloom-filter-fpp.column."
_EXPECTED: Final = "write.parquet.bloom-filter-ndv.column."
_PREFIXES: Final = (ENABLED, RATE, _EXPECTED)

USUAL_RATE: Final = 0.01
"""The share of false positives where nobody asks for another one. It is Iceberg's too."""

BloomFilters: TypeAlias = Mapping[int, float]
"""The columns with a bloom filter, by field id, and the share of false positives that is aimed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyChange:
    updates: Mapping[str, str]
    removals: tuple[str, ...]


def bloom_filters(schema: Schema, properties: Mapping[str, str]) -> dict[int, float]:
    rates: dict[int, float] = {}
    for key, value in properties.items():
        if key.startswith(ENABLED) and value.strip().lower() == "true":
            name = key.removeprefix(ENABLED)
            if (field_id := _id_of(name, schema)) is not None:
                rates[field_id] = _rate(properties.get(RATE + name))
    return rates


def filter_properties(schema: Schema, filters: BloomFilters) -> dict[str, str]:
    properties: dict[str, str] = {}
    for field_id, rate in filters.items():
        if name := schema.find_column_name(field_id):
            properties |= {ENABLED + name: "true", RATE + name: repr(rate)}
    return properties


def changed_properties(
    properties: Mapping[str, str], *, before: Schema, after: Schema, wanted: BloomFilters | None
) -> PropertyChange:
    """Properties follow renamed columns. `wanted` replaces all filters; None leaves them."""
    if wanted is None and before == after:
        return PropertyChange(updates={}, removals=())
    existing = {key: value for key, value in properties.items() if key.startswith(_PREFIXES)}
    then = dict(_renamed(existing, before, after))
    if wanted is not None:
        filters = filter_properties(after, wanted)
        rest = {key: value for key, value in then.items() if not key.startswith((ENABLED, RATE))}
        then = {**rest, **filters}
    return PropertyChange(
        updates={key: value for key, value in then.items() if existing.get(key) != value},
        removals=tuple(sorted(existing.keys() - then.keys())),
    )


def _renamed(known: Mapping[str, str], before: Schema, after: Schema) -> Mapping[str, str]:
    renamed: dict[str, str] = {}
    for key, value in known.items():
        prefix = next(candidate for candidate in _PREFIXES if key.startswith(candidate))
        field_id = _id_of(key.removeprefix(prefix), before)
        name = None if field_id is None else after.find_column_name(field_id)
        if name is not None:
            renamed[prefix + name] = value
    return renamed


def _id_of(name: str, schema: Schema) -> int | None:
    with suppress(ValueError):
        return schema.find_field(name).field_id
    return None


def _rate(text: str | None) -> float:
    with suppress(ValueError):
        rate = float(text or USUAL_RATE)
        if 0 < rate < 1:
            return rate
    return USUAL_RATE
