"""A server's metrics have distinct names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from archiver.telemetry.serving import BudgetRefusals, ServeInstruments, ServingSources, Traffic

DOCS = Path(__file__).parents[4] / "docs/serve.md"
NUMBERS = (
    "connections",
    "cache_bytes",
    "cache_chunks",
    "cache_hits",
    "cache_misses",
    "disk_bytes",
    "disk_hits",
    "decode_seconds",
    "nodes",
    "view",
    "over_budget",
)


def instruments() -> ServeInstruments:
    made = ServeInstruments()
    Traffic(made.registry)
    BudgetRefusals(made.registry).reached("User:a", "groups")
    numbers: dict[str, Any] = {name: lambda: 7 for name in NUMBERS}
    made.read(
        ServingSources(
            **numbers, members=lambda: {"g": 2}, is_leased=lambda: True, ends=lambda: [("orders", 0, 10)], lag=()
        )
    )
    return made


def test_no_name_is_given_twice() -> None:
    names = Counter(metric.name for metric in instruments().registry.collect())
    assert [name for name, count in names.items() if count > 1] == []


def test_refusals_and_waits_are_counted_apart() -> None:
    value = instruments().registry.get_sample_value
    assert value("archiver_serve_over_budget_total", {"budget": "groups"}) == 1
    assert value("archiver_serve_turns_over_budget_total") == 7


def test_all_names_are_in_the_documentation() -> None:
    documented = DOCS.read_text()
    for metric in instruments().registry.collect():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        if name.startswith("archiver_serve_"):
            assert f"`{name}`" in documented, name
