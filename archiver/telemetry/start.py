"""Starts what the configuration asks for besides a job's output: metrics, health and traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from archiver.config import Config
from archiver.ingest.events import JobObserver
from archiver.observer import all_of

_STALLED_INTERVALS = 3
_STALLED_SLACK_SECONDS = 300.0


@contextmanager
def with_telemetry(config: Config, observer: JobObserver) -> Iterator[JobObserver]:
    """Yield an observer that calls `observer`, and also serves metrics and sends spans if the configuration says so.

    Raises ConfigError if the address can't be listened on. One that another process has is waited for.
    """
    with ExitStack() as open_until_the_end:
        more: list[JobObserver] = []
        if config.metrics is not None:
            from archiver.telemetry.health import Health
            from archiver.telemetry.instruments import Instruments
            from archiver.telemetry.listener import Listener
            from archiver.telemetry.metering import Metering
            from archiver.telemetry.patient_listener import PatientListener

            stalled_after = _STALLED_INTERVALS * config.archive.max_commit_interval + _STALLED_SLACK_SECONDS
            instruments, health = Instruments(), Health(stalled_after=stalled_after)
            section = config.metrics
            opens = partial(Listener, section.host, section.port, instruments=instruments, health=health)
            open_until_the_end.enter_context(PatientListener(opens, address=section.listen))
            more.append(Metering(instruments, health))
        if config.traces is not None:
            from archiver.telemetry.tracing import Spans, tracer_to

            tracer = open_until_the_end.enter_context(tracer_to(config.traces.endpoint, config.traces.named_headers))
            more.append(Spans(tracer))
        yield all_of(observer, *more)
