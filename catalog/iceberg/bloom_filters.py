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
    found: dict[int, float] = {}
    for key, value in properties.items():
        if key.startswith(ENABLED) and value.strip().lower() == "true":
            name = key.removeprefix(ENABLED)
            if (field_id := _id_of(name, schema)) is not None:
                found[field_id] = _rate(properties.get(RATE + name))
    return found


def filter_properties(schema: Schema, filters: BloomFilters) -> dict[str, str]:
    found: dict[str, str] = {}
    for field_id, rate in filters.items():
        if name := schema.find_column_name(field_id):
            found |= {ENABLED + name: "true", RATE + name: repr(rate)}
    return found


def changed_properties(
    properties: Mapping[str, str], *, before: Schema, after: Schema, wanted: BloomFilters | None
) -> PropertyChange:
    """Properties follow renamed columns. `wanted` replaces all filters; None leaves them."""
    if wanted is None and before == after:
        return PropertyChange(updates={}, removals=())
    known = {key: value for key, value in properties.items() if key.startswith(_PREFIXES)}
    then = dict(_renamed(known, before, after))
    if wanted is not None:
        filters = filter_properties(after, wanted)
        others = {key: value for key, value in then.items() if not key.startswith((ENABLED, RATE))}
        then = {**others, **filters}
    return PropertyChange(
        updates={key: value for key, value in then.items() if known.get(key) != value},
        removals=tuple(sorted(known.keys() - then.keys())),
    )


def _renamed(known: Mapping[str, str], before: Schema, after: Schema) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, value in known.items():
        prefix = next(each for each in _PREFIXES if key.startswith(each))
        field_id = _id_of(key.removeprefix(prefix), before)
        name = None if field_id is None else after.find_column_name(field_id)
        if name is not None:
            found[prefix + name] = value
    return found


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
