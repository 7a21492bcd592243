"""The demo's three questions for Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`sql` has `{table}`."""

    text: str
    sql: str


QUESTIONS = (
    Question(
        text="Which carriers keep people waiting?",
        sql="""
        SELECT val.carrier                                              AS carrier,
               count(*)                                                 AS flights,
               round(avg(val.arrival.delay_minutes), 1)                 AS minutes_late,
               round(100 * avg(CAST(val.outcome = 'CANCELLED' AS INT)), 1) AS percent_cancelled
        FROM {table} WHERE val.carrier IS NOT NULL
        GROUP BY 1 HAVING count(*) > 5000 ORDER BY minutes_late DESC LIMIT 5""",
    ),
    Question(
        text="What are the busiest routes, and how fast does one fly there?",
        sql="""
        SELECT concat(val.origin, ' - ', val.dest) AS route,
               count(*)                            AS flights,
               count(DISTINCT val.tail_number)     AS aircraft,
               round(avg(val.mph))                 AS mph_since_july
        FROM {table} WHERE val.carrier IS NOT NULL
        GROUP BY 1 ORDER BY flights DESC LIMIT 5""",
    ),
    Question(
        text="Which months to avoid?",
        sql="""
        SELECT date_format(kafka.event_timestamp, 'MMMM')                       AS month,
               count(*)                                                         AS flights,
               round(100 * avg(CAST(val.departure.delay_minutes >= 30 AS INT)), 1) AS percent_half_an_hour_late
        FROM {table} WHERE val.carrier IS NOT NULL
        GROUP BY 1 ORDER BY percent_half_an_hour_late DESC LIMIT 5""",
    ),
)
