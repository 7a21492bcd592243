"""What an archiver shows of itself while it works, besides its output: metrics, health and traces, as configured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from archiver.config import Config
from archiver.ingest.metering import MeteringObserver
from archiver.ingest.observer import JobObserver
from archiver.ingest.observers import Observers

_STALLED_INTERVALS = 3
_STALLED_SLACK_SECONDS = 300.0


@contextmanager
def watched(config: Config, observer: JobObserver) -> Iterator[JobObserver]:
    """An observer that serves metrics and sends spans, where the configuration says so, and tells `observer` too.

    Raises ConfigError where the address can't be listened on.
    """
    with ExitStack() as open_until_the_end:
        more: list[JobObserver] = []
        if config.metrics is not None:
            from archiver.metrics.health import Health
            from archiver.metrics.instruments import Instruments
            from archiver.metrics.listener import Listener

            stalled_after = _STALLED_INTERVALS * config.archive.max_commit_interval + _STALLED_SLACK_SECONDS
            instruments, health = Instruments(), Health(stalled_after=stalled_after)
            listener = Listener(config.metrics.host, config.metrics.port, instruments=instruments, health=health)
            open_until_the_end.enter_context(listener)
            more.append(MeteringObserver(instruments, health))
        if config.traces is not None:
            from archiver.ingest.spans import TracingObserver
            from archiver.metrics.tracing import tracer_to

            tracer = open_until_the_end.enter_context(tracer_to(config.traces.endpoint, config.traces.named_headers))
            more.append(TracingObserver(tracer))
        yield Observers(observer, *more) if more else observer
