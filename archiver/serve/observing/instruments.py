"""The metrics of a server (docs/operations.md lists them). Most are read from its parts when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_PREFIX: Final = "archiver_serve_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the numbers of a server come from. Each is asked from another thread."""

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
    """The metrics of one server, in a Prometheus registry of their own."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(namespace="archiver", registry=self.registry)

    def read(self, sources: Sources) -> None:
        """Read these numbers too, each time somebody asks."""
        self.registry.register(_Read(sources))

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class _Read(Collector):
    def __init__(self, sources: Sources) -> None:
        self._from = sources

    def collect(self) -> Iterator[Metric]:
        """Read all numbers."""
        at = self._from
        members = at.members()
        yield _gauge("connections", "Connected clients", at.connections())
        yield _gauge("cache_bytes", "Bytes of encoded batches in memory", at.cache_bytes())
        yield _gauge("cache_chunks", "Chunks of encoded batches in memory", at.cache_chunks())
        yield _counter("cache_hits", "Chunks that were given out of memory", at.cache_hits())
        yield _counter("cache_misses", "Chunks that had to be decoded", at.cache_misses())
        yield _gauge("disk_cache_bytes", "Bytes of encoded batches on disk, for slow readers", at.disk_bytes())
        yield _counter("disk_cache_hits", "Chunks that were read from disk", at.disk_hits())
        yield _counter("decode_seconds", "Seconds that threads read and encoded", at.decode_seconds())
        yield _gauge("groups", "Groups with members that this node coordinates", len(members))
        yield _gauge("group_members", "Their members", sum(members.values()))
        yield _gauge("nodes", "Live nodes of the cluster, as this one last heard", at.nodes())
        yield _gauge("view", "Counts nodes that came or went; the same on all nodes in agreement", at.view())
        yield _gauge("leased", "1 while this node may coordinate groups", float(at.is_leased()))
        yield _counter("loop_seconds", "Seconds of the event loop that requests took", at.loop_seconds())
        yield _gauge("turns_waiting", "Connections that wait for a turn", at.turns_waiting())
        yield _counter("turns_over_budget", "Times that a client over its budget had to wait", at.over_budget())
        yield _counter("closed_connections", "Connections closed as their client did something wrong", at.closed())
        yield _gauge("fetch_sessions", "Fetch sessions of all connections", at.fetch_sessions())
        yield _counter("access_log_left_out", "Lines that the access log had no time for", at.left_out())
        ends = GaugeMetricFamily(
            f"{_PREFIX}end_offset", "The offset after the last record", labels=("topic", "partition")
        )
        for topic, partition, end in at.ends():
            ends.add_metric((topic, str(partition)), end)
        yield ends
        lag = GaugeMetricFamily(
            f"{_PREFIX}group_lag", "Offsets that a group has not committed yet", labels=("group", "topic", "partition")
        )
        for group, topic, partition, behind in at.lag:
            lag.add_metric((group, topic, str(partition)), behind)
        yield lag


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, text, value)
