"""Loads archived topics' tables from the REST catalog, without Kafka or Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Protocol

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from archiver.config import Config
from archiver.errors import NoTable
from catalog.errors import NewerFormat, NotOurTable
from catalog.iceberg import properties as keys
from catalog.iceberg.rest import connect, in_our_words
from catalog.model import FORMAT_VERSION

CATALOG_SECONDS = 60.0


class TableSource(Protocol):
    def load(self, topic: str) -> Table:
        """Raise NoTable and CatalogError."""

    def topics(self, known: Iterable[str] = ()) -> tuple[str, ...]:
        """Tables of `known` topics aren't loaded."""

    def names(self) -> frozenset[str]:
        """Includes tables of other writers. Loads none."""

    def table_of(self, topic: str) -> str | None:
        """Return None if the topic isn't configured."""


class CatalogTables:
    def __init__(self, config: Config, *, connect: Callable[..., RestCatalog] = connect) -> None:
        self._config = config
        self._connects = connect
        self._uri = config.catalog["uri"]

    def load(self, topic: str) -> Table:
        """Raise NoTable and CatalogError."""
        name = self._config.topic(topic).table
        with in_our_words(self._uri, name), closing(self._connect()) as catalog:
            try:
                table: Table = catalog.load_table(name)
            except NoSuchTableError:
                raise NoTable(
                    "the topic has no archive yet: run `archiver archive` for it, or correct `table` in its section",
                    topic=topic,
                    table=name,
                ) from None
        check_table(table, topic=topic, name=name)
        return table

    def topics(self, known: Iterable[str] = ()) -> tuple[str, ...]:
        topics = set()
        by_table = {self._config.table_of(topic): topic for topic in known}
        with in_our_words(self._uri), closing(self._connect()) as catalog:
            for namespace in self._config.namespaces:
                for name in _tables(catalog, namespace):
                    topic = by_table.get(name) or _topic_of(catalog, namespace, name)
                    if topic is not None and self._config.table_of(topic) == name:
                        topics.add(topic)
        return tuple(sorted(topics))

    def names(self) -> frozenset[str]:
        with in_our_words(self._uri), closing(self._connect()) as catalog:
            return frozenset(name for namespace in self._config.namespaces for name in _tables(catalog, namespace))

    def table_of(self, topic: str) -> str | None:
        return self._config.table_of(topic)

    def _connect(self) -> RestCatalog:
        # a session for every request: tokens expire, and a session can't be shared between threads
        return self._connects(self._config.catalog, timeout_seconds=CATALOG_SECONDS)


def _topic_of(catalog: RestCatalog, namespace: str, name: str) -> str | None:
    try:
        table: Table = catalog.load_table(name)
    except NoSuchTableError:
        if name in _tables(catalog, namespace):
            raise  # catalogs also say this of a table whose metadata is gone
        return None
    return table.properties.get(keys.TOPIC)


def _tables(catalog: RestCatalog, namespace: str) -> list[str]:
    try:
        return [".".join(identifier) for identifier in catalog.list_tables(namespace)]
    except NoSuchNamespaceError:
        return []


def check_table(table: Table, *, topic: str, name: str) -> None:
    """Raise NotOurTable for a table of something else, NewerFormat if a newer archiver wrote it."""
    properties = table.properties
    if properties.get(keys.TOPIC) != topic:
        raise NotOurTable(
            "the table is not the archive of this topic: correct `table` in the topic's section",
            table=name,
            topic=topic,
            archived_topic=properties.get(keys.TOPIC),
        )
    version = properties.get(keys.FORMAT, "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise NewerFormat("the table was written by a newer archiver: upgrade this one", table=name, found=version)
