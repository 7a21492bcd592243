"""Claims on uploads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from archiver.rewrite.upload_claims import RENEW_SECONDS, UploadClaims
from catalog.errors import RegistryUnreachable
from tests.support.catalog.memory import TOPIC
from tests.support.timing.virtual_loop import ManualClock


@dataclass
class Registry:
    renewed: list[list[str]] = field(default_factory=list)
    forgotten: list[list[str]] = field(default_factory=list)
    is_away: bool = False
    runs: list[str] = field(default_factory=list)

    def note_run(self, topic: Any, run_id: str) -> None:
        self.runs.append(run_id)

    def forget_run(self, topic: Any, run_id: str) -> None:
        if self.is_away:
            raise RegistryUnreachable("away")
        self.runs = [run for run in self.runs if run != run_id]

    @property
    def claims(self) -> Any:
        return self

    def renew(self, topic: Any, names: list[str]) -> None:
        self.renewed.append(names)

    def forget(self, topic: Any, names: list[str]) -> None:
        if self.is_away:
            raise RegistryUnreachable("away")
        self.forgotten.append(names)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_file_is_claimed_by_name_and_once(registry: Registry, clock: ManualClock) -> None:
    with UploadClaims.of_run(cast("Any", registry), TOPIC, clock=clock) as claims:
        claims.keep("s3://bucket/data/b.parquet", "s3://bucket/data/a.parquet")
        claims.keep("s3a://bucket/data/a.parquet")
        claims.keep()
    assert registry.renewed == [["a.parquet", "b.parquet"]]
    assert registry.forgotten == [["a.parquet", "b.parquet"]]


def test_all_claims_are_renewed_when_they_are_due(registry: Registry, clock: ManualClock) -> None:
    with UploadClaims.of_run(cast("Any", registry), TOPIC, clock=clock) as claims:
        claims.keep("a")
        for clock.now in (RENEW_SECONDS - 1, RENEW_SECONDS, RENEW_SECONDS + 1, 2 * RENEW_SECONDS):
            claims.keep("b")
    assert registry.renewed == [["a"], ["b"], ["a", "b"], ["a", "b"]]


def test_a_run_that_uploads_nothing_asks_nothing(registry: Registry, clock: ManualClock) -> None:
    with UploadClaims.of_run(cast("Any", registry), TOPIC, clock=clock) as claims:
        clock.now = 2 * RENEW_SECONDS
        claims.keep()
    assert (registry.renewed, registry.forgotten) == ([], [])


def test_a_run_is_noted_while_it_goes_on(registry: Registry, clock: ManualClock) -> None:
    with UploadClaims.of_run(cast("Any", registry), TOPIC, clock=clock) as claims:
        assert len(registry.runs) == 1
        for clock.now in (RENEW_SECONDS - 1, RENEW_SECONDS):
            claims.keep()
        assert registry.runs == registry.runs[:1] * 2
    assert registry.runs == []
    with UploadClaims.of_run(cast("Any", registry), TOPIC, is_noted=False, clock=clock):
        assert registry.runs == []


@pytest.mark.parametrize("is_away", [False, True])
def test_claims_are_forgotten_after_a_failure(registry: Registry, clock: ManualClock, *, is_away: bool) -> None:
    def fail() -> None:
        with UploadClaims.of_run(cast("Any", registry), TOPIC, clock=clock) as claims:
            claims.keep("a")
            raise ValueError("failed")

    registry.is_away = is_away
    with pytest.raises(ValueError, match="failed"):
        fail()
    assert registry.forgotten == ([] if is_away else [["a"]])
