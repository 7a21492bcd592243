"""Starts metrics, health and traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from archiver.chores.runner import ChoreObserver
from archiver.config import Config
from archiver.ingest.events import JobObserver
from archiver.observer import all_of
from archiver.upkeep.retire.report import ExpireObserver

_STALLED_INTERVALS = 3
_STALLED_SLACK_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredObservers:
    job: JobObserver
    retirement: ExpireObserver
    chores: ChoreObserver


@contextmanager
def with_telemetry(config: Config, job: JobObserver, retirement: ExpireObserver) -> Iterator[MeteredObservers]:
    """Raises ConfigError if the address can't be bound; if another process has it, binding is retried."""
    with ExitStack() as open_until_the_end:
        more: list[JobObserver] = []
        more_of_retirement: list[ExpireObserver] = []
        of_chores: list[ChoreObserver] = []
        if config.metrics is not None:
            from archiver.telemetry.health import Health
            from archiver.telemetry.instruments import Instruments
            from archiver.telemetry.listener import Listener
            from archiver.telemetry.metering import ChoreMetering, ExpireMetering, Metering
            from archiver.telemetry.patient_listener import PatientListener

            stalled_after = _STALLED_INTERVALS * config.archive.max_commit_interval + _STALLED_SLACK_SECONDS
            instruments, health = Instruments(), Health(stalled_after=stalled_after)
            section = config.metrics
            opens = partial(Listener, section.host, section.port, instruments=instruments, health=health)
            open_until_the_end.enter_context(PatientListener(opens, address=section.listen))
            more.append(Metering(instruments, health))
            more_of_retirement.append(ExpireMetering(instruments))
            of_chores.append(ChoreMetering(instruments))
        if config.traces is not None:
            from archiver.telemetry.tracing import Spans, tracer_to

            tracer = open_until_the_end.enter_context(tracer_to(config.traces.endpoint, config.traces.named_headers))
            more.append(Spans(tracer))
        yield MeteredObservers(
            job=all_of(job, *more), retirement=all_of(retirement, *more_of_retirement), chores=all_of(*of_chores)
        )
