"""The page at `/` of the metrics port."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from prometheus_client.parser import text_string_to_metric_families

from archiver.html_page import html_page

if TYPE_CHECKING:
    from archiver.telemetry.health import Report

_REFRESH_SECONDS: Final = 10
_SUMMED: Final = {
    "archiver_records_total": "records archived",
    "archiver_lag_offsets": "offsets behind",
    "archiver_failures_total": "failures",
}
"""Metrics that are added up for a topic, with their headings."""
_LARGEST: Final = {"archiver_lag_seconds": "seconds behind", "archiver_last_committed_timestamp_seconds": "last commit"}
_WAITS: Final = {
    "archiver_expire_needs_consent": "retirement waits for consent: `archiver expire {topic} --yes`",
    "archiver_schema_change_waits": "a schema change waits for approval: `archiver schema approve {topic}`",
}
"""Gauges that are 1 while a topic waits for a person, and what it waits for."""
_TIME: Final = "archiver_last_committed_timestamp_seconds"
_LINKS: Final = "/metrics", "/health", "/health/live", "/health/ready"


def status_page(report: Report, metrics: bytes) -> str:
    """`metrics` are in Prometheus's text format."""
    topics = _by_topic(metrics)
    return html_page("archiver", "".join(_body(report, topics)), refresh_seconds=_REFRESH_SECONDS)


def _body(report: Report, topics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    waits = [*_waits(topics)]
    state, is_well = _state(report, has_waits=bool(waits))
    mark = "" if is_well else ' class="bad"'
    yield f"<h1>archiver</h1>\n<p{mark}>{state}.</p>\n"
    if reasons := [*report.reasons, *waits]:
        yield "<ul>" + "".join(f"<li>{escape(reason)}</li>" for reason in reasons) + "</ul>\n"
    if topics:
        columns = {**_SUMMED, **_LARGEST}
        headings = "".join(f"<th>{heading}</th>" for heading in columns.values())
        yield f"<table><tr><th>topic</th>{headings}</tr>\n"
        for topic, values in sorted(topics.items()):
            cells = "".join(f'<td class="number">{_cell(name, values.get(name))}</td>' for name in columns)
            yield f"<tr><td>{escape(topic)}</td>{cells}</tr>\n"
        yield "</table>\n"
    yield "<p>" + " ".join(f'<a href="{link}">{link}</a>' for link in _LINKS) + "</p>\n"
    yield f"<p>Since this process started; {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}</p>\n"


def _state(report: Report, *, has_waits: bool) -> tuple[str, bool]:
    if not report.live:
        return "No progress", False
    if not report.ready:
        return "Live, but not ready", False
    return ("Archiving continues, and something waits for you", False) if has_waits else ("All is well", True)


def _waits(topics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for topic, values in sorted(topics.items()):
        for name, text in _WAITS.items():
            if values.get(name):
                yield f"{topic}: {text.format(topic=topic)}"


def _by_topic(metrics: bytes) -> Mapping[str, Mapping[str, float]]:
    by_topic: dict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(metrics.decode()):
        for sample in family.samples:
            topic = sample.labels.get("topic")
            if not topic:
                continue
            values = by_topic[topic]
            if sample.name in _SUMMED:
                values[sample.name] = values.get(sample.name, 0.0) + sample.value
            elif sample.name in _LARGEST or sample.name in _WAITS:
                values[sample.name] = max(values.get(sample.name, 0.0), sample.value)
    return {topic: values for topic, values in by_topic.items() if values}


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == _TIME:
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}" if value else "-"
    return f"{value:,.0f}"
