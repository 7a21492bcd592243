"""Views in a catalog; tests/integration has Java's verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from catalog.errors import CatalogRefused, NotOurView, ViewsUnsupported
from catalog.iceberg.views import Put, ViewCatalog, ViewDefinition
from tests.support.catalog.view_server import ViewServer, view_server
from tests.support.servers.serving import answering

NAME = ("kafka", "orders_flat")
PATH = "/v1/namespaces/kafka/views/orders_flat"
DEFINED = ViewDefinition(
    topic="orders",
    schema=Schema(NestedField(7, "id", LongType(), required=False, doc="val.id")),
    sql={"spark": "SELECT 1 AS `id`", "trino": 'SELECT 1 AS "id"'},
    tables_in=("kafka",),
    column_names={110: "id", 111: "former"},
)


@pytest.fixture
def server() -> Iterator[ViewServer]:
    with view_server() as running:
        yield running


@pytest.fixture
def views(server: ViewServer) -> Iterator[ViewCatalog]:
    with ViewCatalog({"uri": server.uri}, timeout_seconds=5) as catalog:
        yield catalog


def test_new_view_has_sql_of_each_engine_and_column_names(server: ViewServer, views: ViewCatalog) -> None:
    assert views.column_names(NAME, topic="orders") == {}
    assert views.put(NAME, DEFINED) is Put.CREATED
    (version,) = server.views[PATH]["versions"]
    assert {query["dialect"]: query["sql"] for query in version["representations"]} == DEFINED.sql
    assert version["default-namespace"] == ["kafka"]
    assert "default-catalog" not in version
    assert views.column_names(NAME, topic="orders") == DEFINED.column_names


def test_the_same_view_again_changes_nothing(server: ViewServer, views: ViewCatalog) -> None:
    views.put(NAME, DEFINED)
    assert views.put(NAME, DEFINED) is Put.UNCHANGED
    assert len(server.changes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        replace(DEFINED, sql=DEFINED.sql | {"trino": "SELECT 2"}),
        replace(DEFINED, schema=Schema(NestedField(1, "id", StringType(), required=False, doc="val.id"))),
        replace(DEFINED, schema=Schema(NestedField(1, "id", LongType(), required=False, doc="val.number"))),
        replace(DEFINED, column_names=DEFINED.column_names | {112: "next"}),
    ],
    ids=["sql", "type", "comment", "names"],
)
def test_another_view_replaces_it(server: ViewServer, views: ViewCatalog, changed: ViewDefinition) -> None:
    views.put(NAME, DEFINED)
    assert views.put(NAME, changed) is Put.REPLACED
    view = server.views[PATH]
    assert [entry["version-id"] for entry in view["versions"]] == [1, 2]
    assert (view["current-version-id"], view["versions"][1]["schema-id"]) == (2, 1)
    assert views.put(NAME, changed) is Put.UNCHANGED
    assert views.column_names(NAME, topic="orders") == changed.column_names


@pytest.mark.parametrize("properties", [{}, {"archiver.topic": "orders"}, {"archiver.topic": "other"}])
def test_a_view_of_others_is_left_alone(server: ViewServer, views: ViewCatalog, properties: dict[str, str]) -> None:
    views.put(NAME, DEFINED)
    server.views[PATH]["properties"] = properties
    with pytest.raises(NotOurView, match="--name"):
        views.column_names(NAME, topic="orders")
    with pytest.raises(NotOurView):
        views.put(NAME, DEFINED)
    assert len(server.changes) == 1


def test_a_lost_race_is_run_again(server: ViewServer, views: ViewCatalog) -> None:
    server.refusals = [409]
    assert views.put(NAME, DEFINED) is Put.CREATED
    server.refusals = [409, 404]
    assert views.put(NAME, replace(DEFINED, sql={"spark": "SELECT 3"})) is Put.REPLACED


def test_a_name_that_stays_taken_is_told(server: ViewServer, views: ViewCatalog) -> None:
    server.refusals = [409, 409, 409]
    with pytest.raises(CatalogRefused, match="table has this name"):
        views.put(NAME, DEFINED)


def test_a_catalog_without_views_says_so_at_once() -> None:
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, pytest.raises(ViewsUnsupported, match="--temporary"):
        ViewCatalog({"uri": uri}, timeout_seconds=5)
