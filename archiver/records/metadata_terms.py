"""Turns conditions on metadata into conditions on keys and offsets, which every stage of a search can judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, assert_never

from archiver.errors import ConfigError
from archiver.records.where import COMPARE_VALUES, Where
from archiver.records.where_syntax import AllOf, AnyOf, BytesAre, Condition, MetaIs, Not, NumberIs
from catalog.ranges.spans import joined
from catalog.record_metadata import MetadataEntry, MetadataTarget, OfKey, OfOffsets, current

MOST_TERMS: Final = 1_000
"""The keys and ranges of offsets that a condition may stand for: each is judged for each record."""
NOTHING: Final = NumberIs("offset", "<", 0)


def with_metadata(where: Where, entries: Sequence[MetadataEntry]) -> Where:
    """Replace conditions on metadata. `entries` are of its names, with their history. Raises ConfigError."""
    return replace(where, condition=_replaced(where.condition, current(entries)))


def names_key(condition: Condition, key: bytes) -> bool:
    """Whether a condition holds for every record with a key, by the key alone."""
    match condition:
        case BytesAre("key", comparison, value):
            return COMPARE_VALUES[comparison](key, value)
        case AllOf(terms):
            return all(names_key(term, key) for term in terms)
        case AnyOf(terms):
            return any(names_key(term, key) for term in terms)
        case _:
            return False


def _replaced(condition: Condition, entries: Sequence[MetadataEntry]) -> Condition:
    match condition:
        case MetaIs():
            targets = dict.fromkeys(entry.target for entry in entries if _matches(condition, entry))
            terms = tuple(_terms(condition.name, targets))
            return AnyOf(terms) if terms else NOTHING
        case Not(term):
            return Not(_replaced(term, entries))
        case AllOf(terms):
            return AllOf(tuple(_replaced(term, entries) for term in terms))
        case AnyOf(terms):
            return AnyOf(tuple(_replaced(term, entries) for term in terms))
        case _:
            return condition


def _matches(condition: MetaIs, entry: MetadataEntry) -> bool:
    if entry.name != condition.name or entry.value is None:
        return False
    return condition.value is None or COMPARE_VALUES[condition.comparison](entry.value.encode(), condition.value)


def _terms(name: str, targets: Iterable[MetadataTarget]) -> Iterator[Condition]:
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    keys: list[bytes] = []
    for target in targets:
        match target:
            case OfKey(key):
                keys.append(key)
            case OfOffsets(partition, start, end):
                spans[partition].append((start, end))
            case _ as never:
                assert_never(never)
    ranges = [(partition, *span) for partition, parts in sorted(spans.items()) for span in joined(parts)]
    if len(keys) + len(ranges) > MOST_TERMS:
        raise ConfigError(
            "a condition on metadata stands for too many keys and ranges of offsets: restrict its value",
            name=name,
            keys=len(keys),
            ranges=len(ranges),
            most=MOST_TERMS,
        )
    yield from (BytesAre("key", "=", key) for key in keys)
    for partition, start, end in ranges:
        yield AllOf(
            (NumberIs("partition", "=", partition), NumberIs("offset", ">=", start), NumberIs("offset", "<", end))
        )
