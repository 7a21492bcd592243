"""Which retirements need consent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.config.model import TopicConfig
from archiver.errors import ConsentMissing
from archiver.upkeep.consent import GIVEN, WITHHELD, Consent
from archiver.upkeep.removal.components import Component
from archiver.upkeep.retire.consent import PlannedRemoval, RetirementConsent
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.plan import Retirement
from catalog.model import TopicRow
from catalog.registry.removable import RemovableRange
from catalog.registry.retention_consents import RetentionConsent

NOW = 1_700_000_000.0
TOPIC = TopicRow(id=1, cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")


@dataclass
class Consents:
    found: dict[str, RetentionConsent] = field(default_factory=dict)

    def of_topics(self, _: object) -> dict[int, dict[str, RetentionConsent]]:
        return {TOPIC.id: self.found}

    def request(self, _: object, limits: str, reason: str) -> None:
        self.found.setdefault(limits, RetentionConsent(reason=reason, is_given=False))

    def give(self, _: object, limits: str, *, reason: str, by: str) -> None:
        self.found[limits] = RetentionConsent(reason=reason, is_given=True, given_by=by)

    def withdraw_requests(self, _: object) -> None:
        self.found = {limits: consent for limits, consent in self.found.items() if consent.is_given}


@dataclass
class FakeRegistry:
    consents: Consents = field(default_factory=Consents)


def consent_of(
    registry: FakeRegistry, consent: Consent, *, named: RetireLimits | None = None, **settings: Any
) -> RetirementConsent:
    return RetirementConsent.of(
        TopicConfig(name="orders", table="kafka.orders", **settings),
        named,
        topic=TOPIC,
        registry=cast("Any", registry),
        consent=consent,
        by="jane",
        now=NOW,
    )


def removal(records: int, of_records: int) -> PlannedRemoval:
    return PlannedRemoval(records=records, of_records=of_records, spans=((0, 0, records),) if records else ())


@pytest.mark.parametrize(
    ("settings", "records", "needs"),
    [
        ({"retention": "90d"}, 50, False),
        ({"retention": "90d"}, 51, True),
        ({"retention": "1d"}, 0, False),
        ({"retention": "23h"}, 0, True),
        ({"retention_size": "500GiB"}, 50, False),
        ({"retention_size": "500GiB"}, 99, True),
    ],
)
def test_short_and_large_retirements_need_consent(settings: dict[str, str], records: int, needs: bool) -> None:
    consent = consent_of(FakeRegistry(), WITHHELD, **settings)
    assert bool(consent.reasons(removal(records, 100))) is needs


@pytest.mark.parametrize(
    ("named", "needs"),
    [
        (RetireLimits(offset=5), False),
        (RetireLimits(time_ms=int((NOW - 86_401) * 1_000)), False),
        (RetireLimits(time_ms=int((NOW - 86_399) * 1_000)), True),
        (RetireLimits(time_ms=int((NOW + 10) * 1_000)), True),
    ],
)
def test_limits_of_a_command_are_measured_alike(named: RetireLimits, needs: bool) -> None:
    registry = FakeRegistry()
    consent = consent_of(registry, WITHHELD, named=named, retention="1h")
    assert bool(consent.reasons(removal(1, 100))) is needs
    if needs:
        with pytest.raises(ConsentMissing, match="give --yes; --dry-run shows"):
            consent.check(removal(1, 100))
    consent_of(registry, GIVEN, named=named, retention="1h").check(removal(99, 100))
    assert registry.consents.found == {}, "what a command names is agreed to for that run alone"


def test_consent_is_kept_for_its_value() -> None:
    registry = FakeRegistry()
    with pytest.raises(ConsentMissing, match=r"run `archiver expire orders --yes` once"):
        consent_of(registry, WITHHELD, retention="1h").check(removal(1, 100))
    (limits,) = registry.consents.found
    assert (limits, registry.consents.found[limits].is_given) == ('retention = "1h"', False)
    consent_of(registry, GIVEN, retention="1h").check(removal(1, 100))
    assert registry.consents.found[limits].given_by == "jane"
    consent_of(registry, WITHHELD, retention="1h").check(removal(99, 100))
    for changed in ({"retention": "2h"}, {"retention": "1h", "retention_size": "1GiB"}):
        with pytest.raises(ConsentMissing):
            consent_of(registry, WITHHELD, **changed).check(removal(1, 100))


def test_consent_that_is_not_needed_is_not_kept() -> None:
    registry = FakeRegistry()
    consent_of(registry, GIVEN, retention="90d").check(removal(10, 100))
    assert registry.consents.found == {}, "else a daily --yes would agree to a later mistake"


def test_a_request_ends_when_nothing_needs_consent() -> None:
    registry = FakeRegistry()
    consent = consent_of(registry, WITHHELD, retention="90d")
    with pytest.raises(ConsentMissing):
        consent.check(removal(60, 100))
    consent.check(removal(40, 100))
    assert registry.consents.found == {}


def test_rows_at_an_edge_count_at_most() -> None:
    def file(path: str, rows: int, low: int) -> TableFile:
        return TableFile(
            path=path,
            format="PARQUET",
            rows=rows,
            size_bytes=rows,
            spec_id=0,
            partition_values=(),
            partitions=ValueBounds(0, 0),
            offsets=ValueBounds(low, low + rows - 1),
            latest=None,
        )

    def component(path: str, rows: int, low: int) -> Component:
        range_ = RemovableRange(
            id=path, partition=0, start_offset=low, end_offset=low + rows, paths=(path,), rows=rows, expected=rows
        )
        return Component(ranges=(range_,), files=(file(path, rows, low),), recorded=(path,), has_foreign=False)

    whole, edge = component("a", 10, 0), component("b", 100, 10)
    planned = Retirement(first_offsets={0: 15}, going=(whole,), edges=(edge,))
    measured = PlannedRemoval.of(planned, [*whole.files, *edge.files], {})
    assert (measured.records, measured.of_records, measured.spans) == (15, 110, ((0, 0, 15),))
    assert not measured.is_most
    assert measured.is_same(PlannedRemoval.of(planned, [*whole.files, *edge.files, file("c", 5, 110)], {}))
    assert not measured.is_same(PlannedRemoval.of(planned, [*whole.files, *edge.files], {0: 3}))


def test_rest_of_a_removal_is_within_it() -> None:
    whole = PlannedRemoval(records=20, spans=((0, 0, 20), (1, 5, 10)), paths=frozenset({"a", "b"}))
    assert PlannedRemoval(records=10, spans=((0, 10, 20),), paths=frozenset({"b"})).is_within(whole)
    assert not PlannedRemoval(records=10, spans=((0, 10, 21),), paths=frozenset({"b"})).is_within(whole)
    assert not PlannedRemoval(records=10, spans=((0, 10, 20),), paths=frozenset({"c"})).is_within(whole)
    assert not PlannedRemoval(records=21, spans=((0, 10, 20),), paths=frozenset({"b"})).is_within(whole)
    assert not whole.is_within(None)
