"""Five typical queries, in SQL and for Polars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl
from tables.flights import field

SINCE = datetime(2013, 7, 1, tzinfo=UTC)
UNTIL = datetime(2013, 7, 7, 23, 59, 59, tzinfo=UTC)
PLANE = "N14228"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    partition: int
    offset: int
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneQuestion:
    """`{time}` in the SQL is the table's partition column."""

    title: str
    sql: str
    polars: Callable[[pl.LazyFrame, pl.Expr, Sought], pl.LazyFrame]


def _of_a_week(scan: pl.LazyFrame, time: pl.Expr, _: Sought) -> pl.LazyFrame:
    week = scan.filter((time >= SINCE) & (time <= UNTIL))
    return week.group_by(field("val.origin").alias("origin")).agg(field("val.departure.delay_minutes").mean())


def _of_all(scan: pl.LazyFrame, _: pl.Expr, __: Sought) -> pl.LazyFrame:
    return scan.group_by(field("val.carrier").alias("carrier")).agg(field("val.arrival.delay_minutes").mean())


def _at_an_offset(scan: pl.LazyFrame, _: pl.Expr, sought: Sought) -> pl.LazyFrame:
    condition = (field("kafka.partition") == sought.partition) & (field("kafka.offset") == sought.offset)
    return scan.filter(condition).select(field("val.number").alias("number"), field("val.dest").alias("dest"))


def _of_a_key(scan: pl.LazyFrame, _: pl.Expr, sought: Sought) -> pl.LazyFrame:
    rows = scan.filter(field("key.__raw__") == sought.key)
    return rows.select(field("val.number").alias("number"), field("val.dest").alias("dest"))


def _of_a_plane(scan: pl.LazyFrame, _: pl.Expr, __: Sought) -> pl.LazyFrame:
    return scan.filter(field("val.tail_number") == PLANE).select(pl.len(), field("val.air_minutes").max())


QUESTIONS = (
    PlaneQuestion(
        title="mean delay by carrier, all",
        sql="SELECT val.carrier, avg(val.arrival.delay_minutes) FROM {table} GROUP BY val.carrier",
        polars=_of_all,
    ),
    PlaneQuestion(
        title="mean delay by origin, a week",
        sql="SELECT val.origin, avg(val.departure.delay_minutes) FROM {table} "
        "WHERE {time} BETWEEN {since} AND {until} GROUP BY val.origin",
        polars=_of_a_week,
    ),
    PlaneQuestion(
        title="one offset",
        sql="SELECT val.number, val.dest FROM {table} WHERE kafka.partition = {partition} AND kafka.offset = {offset}",
        polars=_at_an_offset,
    ),
    PlaneQuestion(
        title="one key",
        sql="SELECT val.number, val.dest FROM {table} WHERE key.__raw__ = {key}",
        polars=_of_a_key,
    ),
    PlaneQuestion(
        title="flights of one plane",
        sql="SELECT count(*), max(val.air_minutes) FROM {table} WHERE val.tail_number = {plane}",
        polars=_of_a_plane,
    ),
)
