from __future__ import annotations

from dataclasses import dataclass

from archiver.telemetry.health import MOST_REASONS, Health, HealthReport


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_job_that_has_not_begun_lives_and_is_not_ready() -> None:
    report = Health(stalled_after=10, clock=Clock()).report()
    assert report == HealthReport(live=True, ready=False, reasons=("The job has not begun yet",))


def test_a_run_without_progress_is_dead_and_an_idle_job_is_not() -> None:
    clock = Clock()
    health = Health(stalled_after=10, clock=clock)
    health.began()
    clock.now = 9.0
    assert health.report() == HealthReport(live=True, ready=True, reasons=())
    clock.now = 11.0
    assert health.report() == HealthReport(live=False, ready=False, reasons=("No progress for 11 s",))
    health.progressed()
    assert health.report().live
    health.ended(())
    clock.now = 10_000.0
    assert health.report() == HealthReport(live=True, ready=True, reasons=())


def test_failed_work_stays_the_reason_until_the_next_run() -> None:
    health = Health(stalled_after=10, clock=Clock())
    health.began()
    health.ended(["orders-1: DataLoss: gone"])
    assert health.report() == HealthReport(live=True, ready=False, reasons=("orders-1: DataLoss: gone",))
    health.began()
    assert not health.report().ready
    health.ended(())
    assert health.report().ready


def test_reasons_are_bounded() -> None:
    health = Health(stalled_after=10, clock=Clock())
    health.ended([str(number) for number in range(1_000)])
    assert len(health.report().reasons) == MOST_REASONS + 1
    assert health.report().reasons[-1] == "and 980 more"
