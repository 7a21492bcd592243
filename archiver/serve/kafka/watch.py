"""Metrics, health and the access log of an endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final, Self

from archiver.config.model import ServeSection
from archiver.serve.groups import Coordinator
from archiver.serve.kafka.server import Server
from archiver.serve.nodes import NodeCluster
from archiver.serve.reading import ChunkReader, ServedTopics, Workers
from archiver.telemetry.listener import Listener
from archiver.telemetry.serving import (
    AccessLog,
    BudgetRefusals,
    GroupLag,
    KnownOffsets,
    ServeHealth,
    ServeInstruments,
    ServingSources,
    Traffic,
)

_TURN_SECONDS: Final = 1.0


class Watch:
    """A context manager for one event loop."""

    def __init__(self, section: ServeSection) -> None:
        """Raises ConfigError if the access log can't be written."""
        self._address = section.metrics
        self._instruments = ServeInstruments()
        self._health = ServeHealth(self._troubles)
        self._log = AccessLog(section.access_log, share=section.access_log_share) if section.access_log else None
        self._open = ExitStack()
        self._turning: asyncio.TimerHandle | None = None
        self._cluster: NodeCluster | None = None
        self._topics: ServedTopics | None = None
        self.traffic = Traffic(self._instruments.registry, self._log)
        self.budgets = BudgetRefusals(self._instruments.registry)
        self.offsets = KnownOffsets()

    def __enter__(self) -> Self:
        """Raises ConfigError if the metrics address can't be used."""
        if self._log is not None:
            self._open.enter_context(self._log)
        if self._address is not None:
            host, _, port = self._address.rpartition(":")
            listener = Listener(
                host.strip("[]"), int(port), instruments=self._instruments, health=self._health, key="serve.metrics"
            )
            self._open.enter_context(listener)
        self._turn()
        return self

    def __exit__(self, *_: object) -> None:
        if self._turning is not None:
            self._turning.cancel()
        self._open.close()

    def begin(
        self,
        *,
        server: Server,
        workers: Workers,
        reader: ChunkReader,
        topics: ServedTopics,
        coordinator: Coordinator,
        cluster: NodeCluster,
    ) -> None:
        """From then on the endpoint is ready."""
        self._cluster, self._topics = cluster, topics

        def members() -> Mapping[str, int]:
            return {name: len(group.members) for name, group in list(coordinator.groups.items())}

        def end(topic: str, partition: int) -> int | None:
            return next((served.end(partition) for served in topics.open if served.name == topic), None)

        self._instruments.read(
            ServingSources(
                connections=lambda: server.connections,
                cache_bytes=lambda: reader.cache.bytes,
                cache_chunks=lambda: len(reader.cache),
                cache_hits=lambda: reader.hits,
                cache_misses=lambda: reader.misses,
                disk_bytes=lambda: reader.spilled.bytes if reader.spilled is not None else 0,
                disk_hits=lambda: reader.spilled_hits,
                decode_seconds=lambda: workers.batch_seconds,
                members=members,
                nodes=lambda: len(cluster.members.nodes),
                view=lambda: cluster.members.number,
                is_leased=lambda: cluster.is_leased,
                ends=lambda: [
                    (topic.name, partition, topic.end(partition))
                    for topic in topics.open
                    for partition in range(topic.partitions)
                ],
                lag=GroupLag(self.offsets, end),
                loop_seconds=lambda: server.loop_time.seconds,
                turns_waiting=lambda: server.loop_time.waiting,
                over_budget=lambda: server.loop_time.over_budget,
                closed=lambda: server.closing_log.closed,
                fetch_sessions=lambda: server.fetch_sessions,
                left_out=lambda: 0 if self._log is None else self._log.left_out,
            )
        )
        self._health.ready()

    def ending(self) -> None:
        self._health.ready(is_ready=False)

    def _troubles(self) -> Iterator[str]:
        if self._cluster is not None and not self._cluster.is_leased:
            trouble = self._cluster.trouble
            yield f"Groups are not coordinated: {trouble or 'this node has not joined the others'}"
        if self._topics is None:
            return
        for topic in self._topics.open:
            if topic.trouble is not None:
                yield f"Topic {topic.name} is served as it was last seen: {topic.trouble}"
        for name, trouble in self._topics.troubles.items():
            yield f"Topic {name} can't be opened: {trouble}"

    def _turn(self) -> None:
        self._health.turned()
        self._turning = asyncio.get_running_loop().call_later(_TURN_SECONDS, self._turn)
