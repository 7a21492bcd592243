"""Evaluate `--where`: matching rows of a batch, and bounds of ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import ConfigError
from archiver.records.where_syntax import (
    AllOf,
    AnyOf,
    BytesAre,
    ColumnIs,
    Comparison,
    Condition,
    Exists,
    Header,
    MetaIs,
    Not,
    NullTest,
    NumberField,
    NumberIs,
    parse_where,
)

Mask = npt.NDArray[np.bool_]

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_COLUMNS: Final[dict[NumberField, str]] = {"partition": "partition", "offset": "offset", "time": "timestamp"}
OPPOSITE: Final[dict[Comparison, Comparison]] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
COMPARE: Final[dict[str, Callable[..., Any]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "starts with": pc.starts_with,
    "ends with": pc.ends_with,
    "contains": pc.match_substring,
}
COMPARE_VALUES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "starts with": bytes.startswith,
    "ends with": bytes.endswith,
    "contains": bytes.__contains__,
}
"""COMPARE of two Python values instead of an Arrow column and a value."""
_TEXT_OR_SPACE: Final = re.compile(r"""(?P<text>'[^']*'|"[^"]*")|\s+""")
MATCHES: Final = ("starts with", "ends with", "contains")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive; times in ms."""

    low_offset: int = 0
    high_offset: int = _MOST
    low_time: int = _LEAST
    high_time: int = _MOST

    @property
    def is_empty(self) -> bool:
        return self.low_offset > self.high_offset or self.low_time > self.high_time


@dataclass(frozen=True, slots=True)
class Answer:
    holds: Mask
    unknown: Mask


Answers: TypeAlias = Mapping[ColumnIs, Answer]

_ALL: Final = Bounds()
_NONE: Final = Bounds(low_offset=1, high_offset=0)
_NO_ANSWERS: Final[Answers] = {}


@dataclass(frozen=True, slots=True)
class Where:
    """`text` is the user's, with whitespace outside of quotes collapsed."""

    text: str
    condition: Condition

    @classmethod
    def parse(cls, text: str) -> Where:
        """Raises ConfigError with the position of a mistake."""
        condition = parse_where(text)
        return cls(_TEXT_OR_SPACE.sub(lambda match: match["text"] or " ", text.strip()), condition)

    @property
    def columns(self) -> tuple[ColumnIs, ...]:
        return tuple(dict.fromkeys(_columns(self.condition)))

    @property
    def metadata_names(self) -> frozenset[str]:
        return frozenset(_metadata_names(self.condition))

    @property
    def parts(self) -> frozenset[str]:
        """Of `partition`, `offset`, `time`, `key`, `value` and `headers`."""
        return frozenset(_parts(self.condition))

    def rows(self, records: pa.RecordBatch, answers: Answers = _NO_ANSWERS, *, unknown: bool = False) -> Mask:
        """Whether the condition holds or, with `unknown`, is unknown."""
        return _mask(self.condition, records, answers, unknown=unknown)

    def may_hold(self, rows: int, answers: Answers) -> Mask:
        return _mask(self.condition, rows, answers, unknown=True)

    def filter(self, records: pa.RecordBatch) -> pa.RecordBatch:
        mask = self.rows(records)
        return records if mask.all() else records.filter(pa.array(mask))

    def bounds(self, partition: int) -> Bounds | None:
        bounds = _bounds(self.condition, partition, negated=False)
        return None if bounds.is_empty else bounds


def _mask(condition: Condition, records: pa.RecordBatch | int, answers: Answers, *, unknown: bool) -> Mask:
    """A number of rows stands for unread records: only columns are known."""
    match condition:
        case ColumnIs():
            answer = answers[condition]
            return answer.holds | answer.unknown if unknown else answer.holds & ~answer.unknown
        case Not(term):
            return ~_mask(term, records, answers, unknown=not unknown)
        case AllOf(terms) | AnyOf(terms):
            combine = np.logical_and if isinstance(condition, AllOf) else np.logical_or
            return reduce(combine, (_mask(term, records, answers, unknown=unknown) for term in terms))
        case _:
            return np.full(records, unknown) if isinstance(records, int) else _of_records(condition, records)


def _of_records(condition: NumberIs | BytesAre | NullTest | Exists | MetaIs, records: pa.RecordBatch) -> Mask:
    match condition:
        case NumberIs(field, comparison, value):
            return _true(_compared(records.column(_COLUMNS[field]), comparison, value))
        case BytesAre(Header() as header, comparison, value):
            return _of_headers(records, header, lambda values: _true(_compared(values, comparison, value)))
        case BytesAre(field, comparison, value):
            return _true(_compared(records.column(field), comparison, value))
        case NullTest(Header() as header):
            return _of_headers(records, header, lambda values: _true(values.is_null()))
        case NullTest(field):
            return _true(records.column(field).is_null())
        case Exists(header):
            return _of_headers(records, header, lambda values: np.ones(len(values), np.bool_))
        case MetaIs(name):
            raise ConfigError("a condition on metadata can't be used here", name=name)
        case _ as never:
            assert_never(never)


def _columns(condition: Condition) -> Iterator[ColumnIs]:
    match condition:
        case ColumnIs():
            yield condition
        case Not(term):
            yield from _columns(term)
        case AllOf(terms) | AnyOf(terms):
            for inner in terms:
                yield from _columns(inner)
        case _:
            return


def _metadata_names(condition: Condition) -> Iterator[str]:
    match condition:
        case MetaIs(name):
            yield name
        case Not(term):
            yield from _metadata_names(term)
        case AllOf(terms) | AnyOf(terms):
            for term in terms:
                yield from _metadata_names(term)
        case _:
            return


def _parts(condition: Condition) -> Iterator[str]:
    match condition:
        case Exists() | BytesAre(Header()) | NullTest(Header()):
            yield "headers"
        case NumberIs(field) | BytesAre(field) | NullTest(field):
            yield str(field)
        case Not(term):
            yield from _parts(term)
        case AllOf(terms) | AnyOf(terms):
            for term in terms:
                yield from _parts(term)
        case ColumnIs() | MetaIs():
            return


def _compared(column: pa.Array, comparison: str, value: int | bytes) -> pa.Array:
    if comparison in MATCHES:
        return COMPARE[comparison](column, pattern=value)
    kind = pa.int64() if isinstance(value, int) else column.type
    return COMPARE[comparison](column, pa.scalar(value, kind))


def _of_headers(records: pa.RecordBatch, header: Header, holds: Callable[[pa.Array], Mask]) -> Mask:
    headers = records.column("headers")
    entries = headers.flatten()
    mask = np.zeros(records.num_rows, np.bool_)
    if len(entries):
        named = _true(pc.equal(entries.field("key"), pa.scalar(header.name, pa.binary())))
        named &= holds(entries.field("value"))
        mask[pc.list_parent_indices(headers).to_numpy()[named]] = True
    return mask


def _true(answer: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(answer, fill_value=False).to_numpy(zero_copy_only=False)
    return np.asarray(mask, np.bool_)


def _bounds(condition: Condition, partition: int, *, negated: bool) -> Bounds:
    match condition:
        case NumberIs(field, comparison, value):
            asked = OPPOSITE[comparison] if negated else comparison
            low, high = _interval(asked, value)
            match field:
                case "partition":
                    is_excluded = asked == "!=" and partition == value
                    return _ALL if low <= partition <= high and not is_excluded else _NONE
                case "offset":
                    return Bounds(low_offset=max(0, low), high_offset=high)
                case "time":
                    return Bounds(low_time=low, high_time=high)
        case Not(term):
            return _bounds(term, partition, negated=not negated)
        case AllOf(terms) | AnyOf(terms):
            several = [_bounds(term, partition, negated=negated) for term in terms]
            return _common(several) if isinstance(condition, AllOf) != negated else _around(several)
        case BytesAre() | NullTest() | Exists() | MetaIs() | ColumnIs():
            return _ALL
        case _ as never:
            assert_never(never)


def _interval(comparison: Comparison, value: int) -> tuple[int, int]:
    match comparison:
        case "=":
            return value, value
        case "!=":
            return _LEAST, _MOST
        case "<":
            return _LEAST, value - 1
        case "<=":
            return _LEAST, value
        case ">":
            return value + 1, _MOST
        case ">=":
            return value, _MOST
        case _ as never:
            assert_never(never)


def _common(several: list[Bounds]) -> Bounds:
    return Bounds(
        low_offset=max(bounds.low_offset for bounds in several),
        high_offset=min(bounds.high_offset for bounds in several),
        low_time=max(bounds.low_time for bounds in several),
        high_time=min(bounds.high_time for bounds in several),
    )


def _around(several: list[Bounds]) -> Bounds:
    possible = [bounds for bounds in several if not bounds.is_empty]
    if not possible:
        return _NONE
    return Bounds(
        low_offset=min(bounds.low_offset for bounds in possible),
        high_offset=max(bounds.high_offset for bounds in possible),
        low_time=min(bounds.low_time for bounds in possible),
        high_time=max(bounds.high_time for bounds in possible),
    )
