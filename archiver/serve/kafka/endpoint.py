"""Assembles a Kafka endpoint from a configuration."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from archiver.archive.batches import OpenStreams
from archiver.archive.tables import CatalogTables
from archiver.archive.topic_archive import open_archive
from archiver.codecs import Codec
from archiver.config import Config
from archiver.errors import ConfigError, StorageError
from archiver.serve import heap
from archiver.serve.groups import Coordinator, GroupTimes
from archiver.serve.kafka.apis import load_for_readers
from archiver.serve.kafka.connection import ConnectionLimits
from archiver.serve.kafka.group_upkeep import GroupUpkeep
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.server import Server
from archiver.serve.kafka.service import Service
from archiver.serve.kafka.watch import Watch
from archiver.serve.nodes import Beats, FencedOffsets, NodeAddress, NodeCluster, RegistryNodes, cluster_id_of
from archiver.serve.reading import (
    ChunkCache,
    ChunkReader,
    PartitionBegins,
    ServedTopic,
    ServedTopics,
    SpilledChunks,
    Workers,
)
from archiver.serve.security import Security
from archiver.wire.encode import Compression
from schema_mapping.formats import load_formats

_LOG = logging.getLogger(__name__)
_LEAST_RESPONSE: Final = 256 << 10
_LOADS_PER_THREAD: Final = 3
_DRAIN_SECONDS: Final = 5.0
"""How long answers that are under way when the server ends may take."""


@dataclass(frozen=True, slots=True)
class Listening:
    listen: str
    advertise: str
    node: int
    topics: int


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @classmethod
    def parse(cls, text: str, key: str) -> Address:
        """Parse HOST:PORT. Raises ConfigError, which names `key`."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 0xFFFF:  # noqa: PLR2004 - the highest port
            raise ConfigError(f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:9192", key=key)
        return cls(host.strip("[]"), int(port))

    @property
    def is_loopback(self) -> bool:
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    @property
    def is_any(self) -> bool:
        """Whether it is a wildcard address."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_unspecified
        return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint:
    def __init__(self, config: Config) -> None:
        """Raises ConfigError if addresses can't work."""
        self._config = config
        self._section = config.serve
        self._listen = Address.parse(self._section.listen, "serve.listen")
        advertise = self._section.advertise
        self._advertise = Address.parse(advertise, "serve.advertise") if advertise else None
        if self._advertise is None and self._listen.is_any:
            raise ConfigError(
                "clients can't connect to an address that stands for all of a machine: give `advertise`, the HOST:PORT"
                " that they reach this server at",
                key="serve.advertise",
                listen=str(self._listen),
            )
        self._security = Security(config, is_loopback=self._listen.is_loopback)

    async def run(self, stop: asyncio.Event, ready: Callable[[Listening], None] = lambda _: None) -> None:
        """`ready` is called when clients are accepted.

        Raises the catalog's errors if topics can't be listed at the start.
        """
        section = self._section
        spilled = self._spilled()
        limits = ConnectionLimits(
            most_request_bytes=section.max_request_size,
            idle_seconds=section.idle_timeout,
            most_unauthenticated_bytes=section.max_unauthenticated_request_size,
            handshake_seconds=section.handshake_timeout,
        )
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._security.close)
            await self._security.begin()
            watch = ending.enter_context(Watch(section))
            server = Server(
                limits,
                most_connections=section.max_connections,
                most_per_address=section.max_connections_per_address,
                request_memory=section.request_memory,
                response_memory=section.response_memory,
                loop_share=section.loop_share,
                door=self._security,
            )
            ending.push_async_callback(server.close)
            bound = Address(self._listen.host, await server.listen(self._listen.host, self._listen.port))
            advertised = self._advertise or bound
            workers = ending.enter_context(Workers(section.threads))
            reader = ChunkReader(
                ChunkCache(section.cache_size),
                read_ahead=section.read_ahead,
                most_loads=_LOADS_PER_THREAD * section.threads,
                spilled=spilled,
            )
            begins = PartitionBegins(self._config.registry.dsn)
            ending.push_async_callback(workers.lookup, begins.close)
            topics = self._topics(workers, reader, begins)
            ending.push_async_callback(topics.close)
            ending.push_async_callback(reader.close)
            coordinator = Coordinator(
                times=GroupTimes(interval=section.group_heartbeat, session=section.group_session),
                hears=lambda: cluster.is_leased,
                over_budget=watch.budgets.reached,
            )
            ending.callback(coordinator.close)
            host, port = advertised.host, advertised.port or bound.port
            cluster = self._cluster(host, port, coordinator, watch)
            offsets = FencedOffsets(
                self._config.registry.dsn,
                cluster.cluster_id,
                answers_within=section.lost_after,
                on_refused=cluster.refused,
                saw=watch.offsets.saw,
            )
            ending.push_async_callback(workers.offsets, offsets.close)
            await asyncio.gather(topics.load(), asyncio.to_thread(load_for_readers), asyncio.to_thread(load_formats))
            ending.push_async_callback(cluster.close)
            await cluster.start()
            service = Service(
                cluster=cluster,
                topics=topics,
                reader=reader,
                coordinator=coordinator,
                offsets=offsets,
                kept=workers.offsets,
                quotas=self._security.quotas,
                traffic=watch.traffic,
                budgets=watch.budgets,
                most_metadata_bytes=section.max_offset_metadata,
                spreads_answers=section.spread_answers,
                most_response_bytes=lambda: max(_LEAST_RESPONSE, section.response_memory // max(1, server.connections)),
            )
            await server.start(service)
            watch.begin(
                server=server, workers=workers, reader=reader, topics=topics, coordinator=coordinator, cluster=cluster
            )
            ready(Listening(str(bound), str(Address(host, port)), cluster.own.node_id, len(topics.open)))
            upkeep = GroupUpkeep(cluster, coordinator, offsets, workers.offsets, retention=section.offset_retention)
            await _first(stop.wait(), cluster.ended(), upkeep.run(), _give_memory_back(workers, server.loop_time))
            watch.ending()
            await server.end_in_order(_DRAIN_SECONDS)

    def _cluster(self, host: str, port: int, coordinator: Coordinator, watch: Watch) -> NodeCluster:
        section = self._section

        def let_go(group_id: str) -> None:
            coordinator.forget(group_id)
            watch.offsets.forget(group_id)

        cluster_id = section.cluster_id or cluster_id_of(self._config.catalog)
        return NodeCluster(
            cluster_id,
            RegistryNodes(self._config.registry.dsn, cluster_id, answers_within=section.lost_after),
            NodeAddress(host=host, port=port, node_id=section.node_id),
            beats=Beats(every=section.heartbeat, lost_after=section.lost_after),
            let_go=let_go,
            is_used=coordinator.groups.__contains__,
        )

    def _spilled(self) -> SpilledChunks | None:
        size, named = self._section.disk_cache, self._section.disk_cache_folder
        if not size:
            return None
        try:
            return SpilledChunks(named or Path(tempfile.gettempdir()), size)
        except StorageError as error:
            if named is not None:
                raise ConfigError(str(error), key="serve.disk_cache_folder") from error
            _LOG.warning("slow readers are served without a disk", exc_info=error)
            return None

    def _topics(self, workers: Workers, reader: ChunkReader, begins: PartitionBegins) -> ServedTopics:
        tables = CatalogTables(self._config)
        streams = OpenStreams(self._section.open_streams)
        codec = self._section.compression
        compression: Compression = "original" if codec == "original" else Codec.named(codec)

        async def open_topic(name: str) -> ServedTopic:
            archive = await workers.lookup(open_archive, self._config, name, tables)
            return ServedTopic(
                archive,
                workers,
                streams=streams,
                compression=compression,
                interval=self._section.refresh,
                begins=partial(begins.begins, archive),
                on_rewrite=reader.forget,
            )

        return ServedTopics(tables, open_topic, workers, interval=self._section.refresh)


async def _give_memory_back(workers: Workers, loop_time: LoopTime) -> None:
    collections = heap.Collections(lambda: loop_time.has_long_work)
    given_back: asyncio.Task[None] | None = None
    while True:
        await asyncio.sleep(heap.GIVEN_BACK_EVERY)
        collections.collect_if_due()
        if given_back is None or given_back.done():  # lookups may all wait for a store: collections continue
            given_back = asyncio.ensure_future(workers.lookup(heap.give_freed_memory_back))


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
