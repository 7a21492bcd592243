"""Metrics match their documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import Metric

from archiver.telemetry.instruments import Instruments
from archiver.telemetry.intake import IntakeInstruments, TopicNumbers
from archiver.telemetry.metrics import METRICS, MetricRow, counter
from archiver.telemetry.serving import BudgetRefusals, ServeInstruments, ServingSources, Traffic

DOCS = Path(__file__).parents[3] / "docs"
JOB = [row for row in METRICS.values() if not row.is_of_servers and not row.is_of_intake]
SERVERS = [row for row in METRICS.values() if row.is_of_servers]
INTAKE = [row for row in METRICS.values() if row.is_of_intake]


def of_intake() -> Iterable[Metric]:
    topic = TopicNumbers(topic="sensors", next_offsets={0: 5}, waiting_bytes=1, disk_bytes=2, segments=3)
    return IntakeInstruments(lambda: [topic], lambda: 4).registry.collect()


def of_servers() -> Iterable[Metric]:
    instruments = ServeInstruments()
    Traffic(instruments.registry)
    BudgetRefusals(instruments.registry)
    names = ("connections", "cache_bytes", "cache_chunks", "cache_hits", "cache_misses", "disk_bytes", "disk_hits")
    instruments.read(
        ServingSources(
            **dict.fromkeys(names, lambda: 1),
            decode_seconds=lambda: 1.0,
            members=lambda: {"g": 1},
            nodes=lambda: 1,
            view=lambda: 1,
            is_leased=lambda: True,
            ends=lambda: [("orders", 0, 5)],
            lag=[("g", "orders", 0, 5)],
        )
    )
    return instruments.registry.collect()


@pytest.mark.parametrize(
    ("families", "rows"),
    [(Instruments().registry.collect(), JOB), (of_servers(), SERVERS), (of_intake(), INTAKE)],
    ids=["job", "servers", "intake"],
)
def test_instruments_are_the_rows_of_the_table(families: Iterable[Metric], rows: list[MetricRow]) -> None:
    made = {
        family.name: (family.type, family.documentation)
        for family in families
        if not family.name.startswith("archiver_process_")
    }
    assert made == {row.family: (row.kind, row.text) for row in rows}


@pytest.mark.parametrize(
    ("page", "rows"),
    [("monitoring.md", JOB), ("serve.md", SERVERS), ("flight.md", INTAKE)],
    ids=lambda value: str(value)[:9],
)
def test_the_documentation_has_the_rows_of_the_table(page: str, rows: list[MetricRow]) -> None:
    lines = re.findall(r"^\| (`archiver_[^|]*) \|([^|]*)\|", (DOCS / page).read_text(), re.MULTILINE)
    documented: dict[str, set[str]] = {}
    for names, labels in lines:
        groups = [set(re.findall(r"\w+", group)) for group in labels.split(";")]
        for number, name in enumerate(re.findall(r"`(archiver_\w+)`", names)):
            documented[name] = groups[number] if len(groups) > 1 else groups[0]
    assert documented == {row.documented: set(row.labels) for row in rows}


def test_units_agree_with_names() -> None:
    for row in METRICS.values():
        for unit in ("bytes", "seconds"):
            if row.name.endswith(f"_{unit}") and row.unit != "time":
                assert row.unit == unit, row.name
        assert row.unit != "flag" or row.kind == "gauge", row.name
        assert bool(row.buckets) == (row.kind == "histogram"), row.name


def test_an_instrument_of_another_kind_is_refused() -> None:
    with pytest.raises(AssertionError, match="next_offset"):
        counter("next_offset", Instruments().registry)
    with pytest.raises(KeyError):
        counter("no_such_metric", Instruments().registry)
