"""Whether a condition can hold in files or blocks, without reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeAlias

import numpy as np

from archiver.records.where import OPPOSITE, Mask
from archiver.records.where_syntax import (
    AllOf,
    AnyOf,
    BytesAre,
    ColumnIs,
    Comparison,
    Condition,
    Exists,
    MetaIs,
    Not,
    NullTest,
    NumberIs,
)

Leaf: TypeAlias = NumberIs | BytesAre | NullTest | Exists | MetaIs | ColumnIs


def may_hold(condition: Condition, judge: Callable[[Leaf], Mask], *, negated: bool = False) -> Mask:
    """`judge` says which files or blocks may match a condition without parts, true if in doubt.

    Of negated ones only numbers are judged: a row that isn't known to have a value may have another one.
    """
    match condition:
        case Not(term):
            return may_hold(term, judge, negated=not negated)
        case AllOf(terms) | AnyOf(terms):
            combine = np.logical_and if isinstance(condition, AllOf) is not negated else np.logical_or
            return reduce(combine, (may_hold(term, judge, negated=negated) for term in terms))
        case NumberIs(field, comparison, value) if negated:
            return judge(NumberIs(field, OPPOSITE[comparison], value))
        case _:
            mask = judge(condition)
            return np.ones_like(mask) if negated else mask


def leaves_of(condition: Condition) -> Iterator[Leaf]:
    match condition:
        case Not(term):
            yield from leaves_of(term)
        case AllOf(terms) | AnyOf(terms):
            for term in terms:
                yield from leaves_of(term)
        case _:
            yield condition


def may_be(comparison: Comparison, value: int, low: int, high: int) -> bool:
    """Bounds are inclusive."""
    match comparison:
        case "=":
            return low <= value <= high
        case "!=":
            return not low == value == high
        case "<":
            return low < value
        case "<=":
            return low <= value
        case ">":
            return high > value
        case ">=":
            return high >= value


def may_match(condition: BytesAre, low: bytes, high: bytes) -> bool:
    """Bounds are inclusive, and may be truncated."""
    value = condition.value
    match condition.comparison:
        case "=":
            return low <= value <= high
        case "<":
            return low < value
        case "<=":
            return low <= value
        case ">" | ">=":
            return high >= value
        case "starts with":
            return low[: len(value)] <= value and high >= value
        case _:
            return True
