"""Topics of a catalog while tables vanish."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyiceberg.exceptions import NoSuchTableError

from archiver.archive.tables import CatalogTables
from catalog.errors import CatalogRefused
from catalog.iceberg import properties as keys

CONFIG: Any = SimpleNamespace(
    catalog={"uri": "http://catalog"}, namespaces=("kafka",), table_of=lambda topic: f"kafka.{topic}"
)


class Catalog:
    def __init__(self, *tables: str, dropped: frozenset[str] = frozenset(), lost: frozenset[str] = frozenset()) -> None:
        self.tables, self.dropped, self.lost = tables, dropped, lost
        self.listings = 0

    def list_tables(self, namespace: str) -> list[tuple[str, str]]:
        gone = self.dropped if self.listings else ()
        self.listings += 1
        return [(namespace, table) for table in self.tables if table not in gone]

    def load_table(self, name: str) -> SimpleNamespace:
        topic = name.removeprefix("kafka.")
        if topic in self.dropped | self.lost:
            raise NoSuchTableError(f"Table does not exist: {name}")
        return SimpleNamespace(properties={keys.TOPIC: topic})

    def close(self) -> None: ...


def tables(catalog: Catalog) -> CatalogTables:
    return CatalogTables(CONFIG, connect=cast("Any", lambda *_, **__: catalog))


def test_a_table_that_is_dropped_after_the_listing_is_no_topic() -> None:
    catalog = Catalog("orders", "archiver_check", "users", dropped=frozenset({"archiver_check"}))
    assert tables(catalog).topics() == ("orders", "users")


def test_a_table_that_is_still_listed_but_not_found_is_an_error() -> None:
    """Its metadata may be lost: the topic must not vanish silently."""
    with pytest.raises(CatalogRefused, match=r"kafka\.users"):
        tables(Catalog("orders", "users", lost=frozenset({"users"}))).topics()


def test_tables_of_known_topics_are_listed_without_loading_them() -> None:
    catalog = Catalog("orders", "users", lost=frozenset({"orders"}))
    assert tables(catalog).topics(("orders", "dropped")) == ("orders", "users")
    assert tables(catalog).names() == {"kafka.orders", "kafka.users"}
