"""A server's metrics (docs/serve.md), mostly read at scrape time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from archiver.telemetry.metrics import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSources:
    """Called from another thread."""

    connections: Callable[[], int]
    cache_bytes: Callable[[], int]
    cache_chunks: Callable[[], int]
    cache_hits: Callable[[], int]
    cache_misses: Callable[[], int]
    disk_bytes: Callable[[], int]
    disk_hits: Callable[[], int]
    decode_seconds: Callable[[], float]
    members: Callable[[], Mapping[str, int]]
    """The members of each group that this node coordinates."""
    nodes: Callable[[], int]
    view: Callable[[], int]
    is_leased: Callable[[], bool]
    ends: Callable[[], Iterable[tuple[str, int, int]]]
    """Topics, partitions, and the offset after the last record."""
    lag: Iterable[tuple[str, str, int, int]]
    loop_seconds: Callable[[], float] = field(default=lambda: 0.0)
    turns_waiting: Callable[[], int] = field(default=lambda: 0)
    over_budget: Callable[[], int] = field(default=lambda: 0)
    closed: Callable[[], int] = field(default=lambda: 0)
    fetch_sessions: Callable[[], int] = field(default=lambda: 0)
    left_out: Callable[[], int] = field(default=lambda: 0)
    """Lines that the access log had no time for."""


class ServeInstruments:
    """In a separate Prometheus registry."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(namespace="archiver", registry=self.registry)

    def read(self, sources: ServingSources) -> None:
        self.registry.register(_Read(sources))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Read(Collector):
    def __init__(self, sources: ServingSources) -> None:
        self._from = sources

    def collect(self) -> Iterator[Metric]:
        at = self._from
        members = at.members()
        for name, value in (
            ("connections", at.connections()),
            ("cache_bytes", at.cache_bytes()),
            ("cache_chunks", at.cache_chunks()),
            ("cache_hits", at.cache_hits()),
            ("cache_misses", at.cache_misses()),
            ("disk_cache_bytes", at.disk_bytes()),
            ("disk_cache_hits", at.disk_hits()),
            ("decode_seconds", at.decode_seconds()),
            ("groups", len(members)),
            ("group_members", sum(members.values())),
            ("nodes", at.nodes()),
            ("view", at.view()),
            ("leased", float(at.is_leased())),
            ("loop_seconds", at.loop_seconds()),
            ("turns_waiting", at.turns_waiting()),
            ("turns_over_budget", at.over_budget()),
            ("closed_connections", at.closed()),
            ("fetch_sessions", at.fetch_sessions()),
            ("access_log_left_out", at.left_out()),
        ):
            yield _family(name, [((), value)])
        yield _family("end_offset", [((topic, str(partition)), end) for topic, partition, end in at.ends()])
        yield _family(
            "group_lag", [((group, topic, str(partition)), behind) for group, topic, partition, behind in at.lag]
        )


def _family(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    row = METRICS[f"serve_{name}"]
    kind = CounterMetricFamily if row.kind == "counter" else GaugeMetricFamily
    family = kind(row.family, row.text, labels=row.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
