"""The servers of an archive job, connected, and what people call them."""

from __future__ import annotations

from contextlib import ExitStack

from archiver.config import Config
from archiver.engine.choice import EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import SourceError
from archiver.ingest.task.work import MODULES
from archiver.kafka.broker import BrokerClient
from archiver.topics.catalog_pool import CatalogPool
from catalog.errors import RegistryError, TableError
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.errors import ContextError


class JobServers:
    """The servers that a job is connected to. The engine starts when it is first asked for."""

    def __init__(
        self, config: Config, *, brokers: BrokerClient, registry: Registry, catalog: TableCatalog, closing: ExitStack
    ) -> None:
        self._config = config
        self.brokers = brokers
        self.registry = registry
        self.catalog = catalog
        self.catalogs = closing.enter_context(
            CatalogPool(lambda: TableCatalog(config.catalog, may_be_away=True), most=config.archive.catalog_connections)
        )
        self.engines = closing.enter_context(EngineChoice(config.spark, preloaded=MODULES))
        self.cluster_id = brokers.cluster_id()

    def known_topics(self) -> dict[str, TopicRow]:
        """The registry's topics of this cluster, by name."""
        return {row.topic: row for row in self.registry.topics.every() if row.cluster_id == self.cluster_id}

    @property
    def engine(self) -> Engine:
        """The engine, which starts at its first use."""
        return self.engines.engine


def server_of(error: ContextError) -> str:
    """The server that an error is about, as people call it."""
    match error:
        case SourceError():
            return "Kafka"
        case RegistryError():
            return "Postgres"
        case TableError():
            return "the catalog"
        case _:
            return type(error).__name__
