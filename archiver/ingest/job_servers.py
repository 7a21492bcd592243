"""The servers of an archive job."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from archiver.config import Config, TopicConfig
from archiver.engine.choice import EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import SourceError
from archiver.ingest.task.work import MODULES
from archiver.kafka.broker import BrokerClient
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.shared_tables import refuse_shared, tables_shared
from catalog.errors import RegistryError, TableError, TableTaken
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.errors import ContextError


class JobServers:
    """The engine starts at its first use."""

    def __init__(
        self, config: Config, *, brokers: BrokerClient, registry: Registry, catalog: TableCatalog, closing: ExitStack
    ) -> None:
        self._config = config
        self.brokers = brokers
        self.registry = registry
        self.catalog = catalog
        self.catalogs = closing.enter_context(
            CatalogPool(
                lambda: TableCatalog(config.catalog, may_be_away=True, memory=catalog.memory),
                most=config.archive.catalog_connections,
            )
        )
        self.engines = closing.enter_context(EngineChoice(config.spark, preloaded=MODULES))
        self.cluster_id = brokers.cluster_id()

    def known_topics(self) -> dict[str, TopicRow]:
        return {row.topic: row for row in self.registry.topics.every() if row.cluster_id == self.cluster_id}

    def refused_to_share(self, topics: Sequence[TopicConfig]) -> dict[str, TableTaken]:
        if not tables_shared(topics):
            return {}
        owners = self.registry.topics.owners()
        return refuse_shared(topics, owners, cluster_id=self.cluster_id, named=self._config.sections)

    @property
    def engine(self) -> Engine:
        return self.engines.engine


def server_of(error: ContextError) -> str:
    match error:
        case SourceError():
            return "Kafka"
        case RegistryError():
            return "Postgres"
        case TableError():
            return "the catalog"
        case _:
            return type(error).__name__
