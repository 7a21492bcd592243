"""A running Flight server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import grpc

from archiver.config import Config, TopicConfig
from archiver.errors import ConfigError, ServeError
from archiver.flight.identity import Identities
from archiver.flight.memory import MessageMemory
from archiver.flight.server_tls import server_credentials
from archiver.flight.service import FlightLimits, FlightService
from archiver.intake.events import IntakeObserver
from archiver.intake.filled_topic import FilledTopic
from archiver.observer import all_of
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.serve.kafka.endpoint import Address
from archiver.serve.security import Security
from archiver.setup.flight_checks import no_folder
from archiver.storage.journal import Journal
from archiver.storage.spool import check_spool
from archiver.telemetry.intake import IntakeHealth, IntakeInstruments, TopicNumbers
from archiver.telemetry.listener import Listener
from archiver.topics.opening import TopicServers
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from catalog.registry.postgres import check_dsn

_LOG = logging.getLogger(__name__)
_WORKERS: Final = 2
_GRACE_SECONDS: Final = 5.0
_OVERHEAD: Final = 128 << 10
"""Bytes of a message beside the batch."""
_CONNECTIONS: Final = 3
"""Connections to the registry for each topic: a lease, the work, and reports."""


@dataclass(frozen=True, slots=True)
class FlightListening:
    address: str
    topics: int


class FlightEndpoint:
    def __init__(self, config: Config) -> None:
        """Raises ConfigError."""
        self._config = config
        self._section = config.flight
        self._topics = config.flight_topics
        self._listen = Address.parse(self._section.listen, "flight.listen")
        self._check()
        self._security = Security(config, is_loopback=self._listen.is_loopback)
        self._credentials = server_credentials(config.serve.tls) if config.serve.tls else None

    async def run(self, stop: asyncio.Event, ready: Callable[[FlightListening], None] = lambda _: None) -> None:
        """Serve until `stop`, then write acknowledged rows to the table. Raises subclasses of ContextError."""
        section = self._section
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._security.close)
            await self._security.begin()
            connections = _CONNECTIONS * len(self._topics) + 1
            registry = await asyncio.to_thread(Registry, self._config.registry.dsn, connections=connections)
            ending.push_async_callback(asyncio.to_thread, registry.close)
            topics: dict[str, FilledTopic] = {}
            memory = MessageMemory(section.memory)
            instruments = IntakeInstruments(lambda: map(_numbers, tuple(topics.values())), lambda: memory.used)
            health = IntakeHealth(lambda: map(_numbers, tuple(topics.values())))
            if section.metrics is not None:
                address = Address.parse(section.metrics, "flight.metrics")
                ending.enter_context(
                    Listener(address.host, address.port, instruments=instruments, health=health, key="flight.metrics")
                )
            observer = all_of(instruments)
            for settings in self._topics:
                topic = await asyncio.to_thread(self._open, settings, registry, ending, observer)
                ending.push_async_callback(asyncio.to_thread, topic.close)
                topics[settings.name] = topic
            workers = ending.enter_context(ThreadPoolExecutor(_WORKERS, thread_name_prefix="flight"))
            service = FlightService(
                topics,
                Identities(self._security, seconds=section.session),
                limits=FlightLimits(message_bytes=section.max_message_size, window=section.window),
                memory=memory,
                workers=workers,
            )
            server = grpc.aio.server(options=self._options(), maximum_concurrent_rpcs=section.max_streams)
            server.add_generic_rpc_handlers((service.handlers(),))
            port = self._bind(server)
            for topic in topics.values():
                topic.start()
            await server.start()
            ending.push_async_callback(server.stop, _GRACE_SECONDS)
            health.ready()
            ready(FlightListening(str(Address(self._listen.host, port)), len(topics)))
            await stop.wait()
            health.stop()

    def _open(
        self, settings: TopicConfig, registry: Registry, ending: AsyncExitStack, observer: IntakeObserver
    ) -> FilledTopic:
        catalog = ending.enter_context(TableCatalog(self._config.catalog, may_be_away=True))
        servers = TopicServers(registry=registry, catalog=catalog, journal=Journal.of(self._config))
        return FilledTopic(self._config, settings, servers, observer=observer)

    def _bind(self, server: grpc.aio.Server) -> int:
        address = str(self._listen)
        try:
            if self._credentials is None:
                return int(server.add_insecure_port(address))
            return int(server.add_secure_port(address, self._credentials))
        except RuntimeError as error:
            raise ServeError("the address can't be listened on: another process may have it", listen=address) from error

    def _options(self) -> Sequence[tuple[str, int]]:
        return (
            ("grpc.max_receive_message_length", self._section.max_message_size + _OVERHEAD),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_permit_without_calls", 1),
        )

    def _check(self) -> None:
        if not self._topics:
            raise ConfigError('there is no topic to take rows for: write source = "flight" in a section [topics.NAME]')
        if self._section.wal is None:
            raise no_folder()
        check_dsn(self._config.registry.dsn)
        check_spool(self._config.archive.spool)
        for topic in self._topics:
            TopicSchemas.check(topic, self._config.schema_registry)


def _numbers(topic: FilledTopic) -> TopicNumbers:
    status = topic.status()
    return TopicNumbers(
        topic=status.topic,
        next_offsets=status.next_offsets,
        waiting_bytes=status.waiting_bytes,
        disk_bytes=status.disk_bytes,
        segments=status.segments,
        ended=None if status.ended is None else str(status.ended),
        problem=None if status.error is None else str(status.error),
    )
