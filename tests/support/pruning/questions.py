"""Queries and the few row groups that they need."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

Value = int | str | bytes | datetime
SUMMED: Final = ("val", "cents")
"""What every query sums up, beside counting rows."""


@dataclass(frozen=True, slots=True)
class Term:
    path: tuple[str, ...]
    low: Value
    high: Value

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    title: str
    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(term.name for term in self.terms), ".".join(SUMMED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    rows: int
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    answer: Answer
    files: int
    groups: int


def needed(question: Question, files: Iterable[Sequence[pa.Table]]) -> Needed:
    result = [[_answer(question, group) for group in groups] for groups in files]
    flat = [group for groups in result for group in groups]
    return Needed(
        answer=Answer(rows=sum(file.rows for file in flat), cents=sum(item.cents for item in flat)),
        files=sum(any(group.rows for group in groups) for groups in result),
        groups=sum(file.rows > 0 for file in flat),
    )


def _answer(question: Question, group: pa.Table) -> Answer:
    (rows,) = group.combine_chunks().to_batches() or [None]
    masks = [_between(column(rows, term.path), term) for term in question.terms]
    cents = column(rows, SUMMED)
    if masks:
        cents = cents.filter(functools.reduce(pc.and_, masks))
    return Answer(rows=len(cents), cents=pc.sum(cents).as_py() or 0)


def _between(values: pa.Array, term: Term) -> pa.Array:
    low, high = (pa.scalar(value, values.type) for value in (term.low, term.high))
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def column(rows: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    first, *rest = path
    return functools.reduce(pc.struct_field, rest, rows.column(first))
