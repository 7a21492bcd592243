"""The endpoint of a configuration: archived topics, the caches, and the server in front of them."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Final

from archiver.archive.batches import OpenStreams
from archiver.archive.tables import CatalogTables
from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.config import Config
from archiver.errors import ConfigError
from archiver.serve.groups import Coordinator, GroupTimes, RegistryOffsets
from archiver.serve.kafka.connection import ConnectionLimits
from archiver.serve.kafka.server import Server
from archiver.serve.kafka.service import Identity, Service
from archiver.serve.reading import ChunkCache, PartitionReader, ServedTopic, ServedTopics, Workers
from archiver.serve.security import Security
from archiver.wire import Codec
from archiver.wire.encode import Compression
from catalog.registry import RegistryReader
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_LEAST_RESPONSE: Final = 1 << 20
_LOADS_PER_THREAD: Final = 3


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the server listens, where clients connect to, and how many topics there are."""

    listen: str
    advertise: str
    topics: int

    def line(self) -> str:
        """One JSON object, as a line for machines."""
        return json.dumps({"event": "listening", **asdict(self)})


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, key: str) -> Address:
        """Parse HOST:PORT. ConfigError, which names the key, for anything else."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 0xFFFF:  # noqa: PLR2004 - the highest port
            raise ConfigError(f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:9192", key=key)
        return cls(host.strip("[]"), int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    @property
    def is_any(self) -> bool:
        """Whether it stands for all addresses of the machine, and is none that a client could connect to."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_unspecified
        return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint:
    """Serves the archived topics of a configuration to Kafka clients."""

    def __init__(self, config: Config, *, listen: str | None = None, advertise: str | None = None) -> None:
        """`listen` and `advertise` replace those of the configuration. ConfigError where they can't work."""
        self._config = config
        self._section = config.serve
        self._listen = Address.parse(listen or self._section.listen, "serve.listen")
        told = advertise or self._section.advertise
        self._advertise = Address.parse(told, "serve.advertise") if told else None
        if self._advertise is None and self._listen.is_any:
            raise ConfigError(
                "clients can't connect to an address that stands for all of a machine: give `advertise`, the HOST:PORT"
                " that they reach this server at",
                key="serve.advertise",
                listen=str(self._listen),
            )
        self._security = Security(config, is_loopback=self._listen.is_loopback)

    async def run(self, stop: asyncio.Event, ready: Callable[[Listening], None] = lambda _: None) -> None:
        """Serve until `stop` is set; `ready` is called once clients are taken.

        Raises the catalog's errors if it can't be asked for topics at the start. Later it may be away.
        """
        section = self._section
        limits = ConnectionLimits(
            most_request_bytes=section.max_request_size,
            idle_seconds=section.idle_timeout,
            most_unauthenticated_bytes=section.max_unauthenticated_request_size,
            handshake_seconds=section.handshake_timeout,
        )
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._security.close)
            await self._security.begin()
            server = Server(
                limits,
                most_connections=section.max_connections,
                most_per_address=section.max_connections_per_address,
                request_memory=section.request_memory,
                door=self._security,
            )
            ending.push_async_callback(server.close)
            bound = Address(self._listen.host, await server.listen(self._listen.host, self._listen.port))
            advertised = self._advertise or bound
            workers = ending.enter_context(Workers(section.threads))
            cache = ChunkCache(section.cache_size)
            topics = self._topics(workers, cache)
            ending.push_async_callback(topics.close)
            reader = PartitionReader(
                cache, read_ahead=section.read_ahead, most_loads=_LOADS_PER_THREAD * section.threads
            )
            ending.push_async_callback(reader.close)
            coordinator = Coordinator(times=GroupTimes(interval=section.group_heartbeat, session=section.group_session))
            ending.callback(coordinator.close)
            offsets = RegistryOffsets(self._config.registry.dsn)
            ending.push_async_callback(workers.offsets, offsets.close)
            await topics.load()
            service = Service(
                identity=Identity(
                    cluster_id=_cluster_id(self._config.catalog),
                    node_id=section.node_id,
                    host=advertised.host,
                    port=advertised.port or bound.port,
                ),
                topics=topics,
                reader=reader,
                coordinator=coordinator,
                offsets=offsets,
                kept=workers.offsets,
                quotas=self._security.quotas,
                most_response_bytes=lambda: max(_LEAST_RESPONSE, section.response_memory // max(1, server.connections)),
            )
            await server.start(service)
            ready(Listening(str(bound), str(advertised), len(topics.open)))
            await stop.wait()

    def _topics(self, workers: Workers, cache: ChunkCache) -> ServedTopics:
        tables = CatalogTables(self._config)
        streams = OpenStreams(self._section.open_streams)
        codec = self._section.compression
        compression: Compression = "original" if codec == "original" else Codec[codec.upper()]

        async def open_topic(name: str) -> ServedTopic:
            archive = await workers.lookup(open_archive, self._config, name, tables)
            return ServedTopic(
                archive,
                workers,
                streams=streams,
                compression=compression,
                interval=self._section.refresh,
                begins=lambda: _begins(self._config, archive),
                on_rewrite=cache.forget,
            )

        return ServedTopics(tables, open_topic, workers, interval=self._section.refresh)


def _begins(config: Config, archive: TopicArchive) -> Mapping[int, int]:
    """Where the archive of each partition begins, as far as the registry tells."""
    try:
        with RegistryReader(config.registry.dsn, connections=1) as registry:
            row = registry.topics.find(
                cluster_id=archive.cluster_id, topic=archive.topic, table_uuid=archive.table_uuid
            )
            return {} if row is None else registry.starts.known(row)
    except ContextError as error:
        _LOG.warning("topic %s is taken to begin at its first records", archive.topic, exc_info=error)
        return {}


def _cluster_id(catalog: Mapping[str, str]) -> str:
    """The id of this cluster, as long as Kafka's own ids: always the same for a catalog, and no live cluster's."""
    named = "|".join((catalog["uri"], catalog.get("warehouse", "")))
    return urlsafe_b64encode(hashlib.sha256(named.encode()).digest()[:16]).decode().rstrip("=")
