"""Tables in a catalog that loses requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, TimestamptzType

from catalog.errors import CatalogDenied, CatalogRefused, CatalogUnreachable, NotOurTable, TableMissing
from catalog.iceberg.commit import Backoff
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.repartition import changes_of, is_partitioned
from catalog.iceberg.table_catalog import TableCatalog
from catalog.partitioning import PartitionTerm
from schema_mapping.columns.fixed_ids import FLAT_INGEST_TIMESTAMP_ID
from schema_mapping.row import PartitionSource
from tests.support.catalog.memory import TOPIC, change, span
from tests.support.catalog.scripted_rest import (
    Rest,
    deny,
    deny_landed,
    lose_answer,
    lose_request,
    refuse_landed,
    refuse_landed_with_status,
    refuse_with_status,
    refused,
    say_so_only,
    twice,
)

NESTED = replace(TOPIC, table="lake.kafka.orders")


@pytest.fixture
def rest(tmp_path: Path) -> Rest:
    return Rest(tmp_path)


@pytest.fixture
def catalog(rest: Rest) -> TableCatalog:
    backoff = Backoff(attempts=3, pause=lambda _: None)
    return TableCatalog({"uri": "http://catalog"}, backoff=backoff, connect=cast("Any", lambda *_, **__: rest))


def test_missing_table_is_none_or_an_error(catalog: TableCatalog) -> None:
    assert catalog.load(TOPIC) is None
    assert catalog.adopt(TOPIC.table, topic=TOPIC.topic) is None
    with pytest.raises(TableMissing, match="the table is gone"):
        catalog.require(TOPIC)


def test_a_table_is_made_with_every_namespace_above_it(catalog: TableCatalog, rest: Rest) -> None:
    made = catalog.ensure(NESTED, change())
    assert rest.namespaces == {("lake",), ("lake", "kafka")}
    assert made.uuid == rest.tables[NESTED.table].table_uuid
    assert (made.partitioning.by, made.partition_source) == ("day(13)", "nested")
    assert made.schema.as_struct() == change().schema.as_struct()


def test_a_table_that_is_there_is_left_as_it_is(catalog: TableCatalog) -> None:
    first = catalog.ensure(TOPIC, change(), partition_by="month")
    again = catalog.ensure(TOPIC, change(), partition_by="hour")
    assert (again.uuid, again.partitioning.by) == (first.uuid, "month(13)")


@pytest.mark.parametrize(
    "script",
    [
        [lose_answer],
        [lose_request],
        [lose_request, lose_request],
        [lose_request, lose_answer],
        [twice],
        [refuse_landed],
        [deny_landed],
    ],
    ids=["answer lost", "request lost", "two lost", "lost either way", "delivered twice", "refused", "denied"],
)
def test_it_is_made_once_whatever_the_network_loses(
    catalog: TableCatalog, rest: Rest, script: list[Callable[[Callable[[], Any]], Any]]
) -> None:
    rest.script = script
    assert catalog.ensure(TOPIC, change()).uuid == rest.tables[TOPIC.table].table_uuid
    assert rest.script == []


def test_a_refused_creation_is_not_tried_again(catalog: TableCatalog, rest: Rest) -> None:
    rest.script = [deny] * 2
    with pytest.raises(CatalogDenied, match="not yours"):
        catalog.ensure(TOPIC, change())
    assert len(rest.script) == 1


@pytest.mark.parametrize("fate", [lose_answer, lose_request, refuse_landed, deny_landed])
def test_a_partitioning_is_changed_once(
    catalog: TableCatalog, rest: Rest, fate: Callable[[Callable[[], Any]], Any]
) -> None:
    table = catalog.ensure(TOPIC, change())
    monthly = partitioning_for((PartitionTerm("month", None),), table.schema, "nested")
    rest.script = [fate]
    changed = catalog.repartition(table, monthly, change_id="ID", attempted=lambda _: None)
    assert changes_of(changed) == ("ID",)
    assert is_partitioned(changed, monthly)


def test_a_refused_partitioning_is_raised(catalog: TableCatalog, rest: Rest) -> None:
    table = catalog.ensure(TOPIC, change())
    monthly = partitioning_for((PartitionTerm("month", None),), table.schema, "nested")
    rest.script = [deny] * 2
    with pytest.raises(CatalogDenied, match="not yours"):
        catalog.repartition(table, monthly, change_id="ID", attempted=lambda _: None)
    assert len(rest.script) == 1


def test_a_catalog_that_never_answers_is_given_up(catalog: TableCatalog, rest: Rest) -> None:
    rest.script = [lose_request] * 9
    with pytest.raises(CatalogUnreachable):
        catalog.ensure(TOPIC, change())
    assert len(rest.script) == 6


def test_a_catalog_that_says_it_made_the_table_must_have_it(catalog: TableCatalog, rest: Rest) -> None:
    rest.script = [say_so_only]
    with pytest.raises(TableMissing, match="does not have it"):
        catalog.ensure(TOPIC, change())


def test_a_rival_that_makes_the_namespace_first_does_no_harm(catalog: TableCatalog, rest: Rest) -> None:
    def late(namespace: tuple[str, ...]) -> None:
        rest.namespaces.add(namespace)
        raise NamespaceAlreadyExistsError(".".join(namespace))

    rest.create_namespace = late  # type: ignore[method-assign]
    assert catalog.ensure(NESTED, change()).topic is NESTED


def test_another_topic_s_table_is_not_ours(catalog: TableCatalog) -> None:
    catalog.ensure(TOPIC, change())
    payments = replace(TOPIC, topic="payments")
    for ask in (catalog.load, catalog.require):
        with pytest.raises(NotOurTable):
            ask(payments)
    with pytest.raises(NotOurTable):
        catalog.adopt(TOPIC.table, topic="payments")
    adopted = catalog.adopt(TOPIC.table, topic=TOPIC.topic)
    assert adopted is not None
    assert (adopted.topic.id, adopted.topic.cluster_id) == (0, TOPIC.cluster_id)


def test_a_namespace_says_which_archives_it_has(catalog: TableCatalog, rest: Rest) -> None:
    assert catalog.archives("kafka") == {}
    made = catalog.ensure(TOPIC, change())
    foreign = made.iceberg.metadata.model_copy(update={"properties": {}})
    rest.tables["kafka.others"] = foreign
    assert catalog.archives("kafka") == {TOPIC.table: TOPIC.topic}


def test_recreated_table_gets_no_commit(catalog: TableCatalog, rest: Rest) -> None:
    table = catalog.ensure(TOPIC, change())
    del rest.tables[TOPIC.table]
    with pytest.raises(TableMissing, match="was dropped"):
        catalog.commit(table, [span(0, 0, 10)], commit_id="c")
    assert catalog.ensure(TOPIC, change()).uuid != table.uuid
    with pytest.raises(TableMissing, match="was dropped") as error:
        catalog.commit(table, [span(0, 0, 10)], commit_id="c")
    assert error.value.context["uuid"] == str(table.uuid)


def test_a_catalog_may_be_away_at_first(rest: Rest) -> None:
    answers: list[Any] = [CatalogUnreachable("away"), CatalogUnreachable("away"), CatalogUnreachable("away"), rest]

    def connect(*_: Any, **__: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return rest

    with pytest.raises(CatalogUnreachable):
        TableCatalog({"uri": "http://catalog"}, connect=connect)
    with TableCatalog({"uri": "http://catalog"}, may_be_away=True, connect=connect) as catalog:
        with pytest.raises(CatalogUnreachable):
            catalog.load(TOPIC)
        assert catalog.load(TOPIC) is None
    assert rest.is_closed


REFUSALS = (400, 406, 501)
"""AWS Glue answers 400, RustFS 406 (rustfs/rustfs#7901), servers that lack it 501 (trinodb/trino#28739)."""


@pytest.mark.parametrize("status", REFUSALS)
def test_a_catalog_without_staged_creation(catalog: TableCatalog, rest: Rest, status: int) -> None:
    rest.refusal = status
    made = catalog.ensure(NESTED, change())
    metadata = made.iceberg.metadata
    assert made.schema.as_struct() == change().schema.as_struct(), "the ledger's field ids"
    assert (made.partitioning.by, made.topic) == ("day(13)", NESTED)
    assert metadata.properties["made-by"] == "somebody"
    assert metadata.default_sort_order_id == 1


@pytest.mark.parametrize(
    "script",
    [[lose_answer], [lose_request], [twice], [None, lose_answer], [None, lose_request], [None, refuse_landed]],
    ids=["table lost", "request lost", "delivered twice", "update lost", "update never came", "update refused"],
)
def test_a_plain_table_is_completed_once(catalog: TableCatalog, rest: Rest, script: list[Any]) -> None:
    rest.refusal = 400
    rest.script = [fate or (lambda make: make()) for fate in script]
    made = catalog.ensure(TOPIC, change())
    assert made.schema.as_struct() == change().schema.as_struct()
    assert len(rest.tables) == 1


ORDER_SCRIPTS: tuple[tuple[list[Any], bool], ...] = (
    ([refuse_with_status], False),
    ([refuse_with_status, lose_answer], False),
    ([refuse_with_status, twice], False),
    ([refuse_with_status, refuse_landed_with_status], False),
    ([refuse_with_status, lose_request, refuse_with_status], False),
    ([refuse_landed_with_status], True),
)


@pytest.mark.parametrize(("script", "is_sorted"), ORDER_SCRIPTS)
@pytest.mark.parametrize("source", ["nested", "flat"])
@pytest.mark.parametrize("is_staged", [True, False])
def test_a_refused_order_is_left_out(
    catalog: TableCatalog,
    rest: Rest,
    *,
    caplog: pytest.LogCaptureFixture,
    script: list[Any],
    is_sorted: bool,
    source: PartitionSource,
    is_staged: bool,
) -> None:
    columns = change()
    if source == "flat":
        top = NestedField(FLAT_INGEST_TIMESTAMP_ID, "ingest_timestamp", TimestamptzType())
        columns = replace(
            columns,
            schema=Schema(*columns.schema.fields, top),
            owned_ids=columns.owned_ids | {FLAT_INGEST_TIMESTAMP_ID},
        )
    rest.refusal = None if is_staged else 400
    plain = [] if is_staged else [lambda make: make()]
    rest.script = [*plain, *script]
    made = catalog.ensure(TOPIC, columns, partition_source=source)
    orders = made.iceberg.metadata.sort_orders
    assert any(order.fields for order in orders) == is_sorted
    assert made.iceberg.metadata.default_sort_order_id == int(is_sorted and source == "nested")
    assert made.schema.as_struct() == columns.schema.as_struct()
    assert (made.partition_source, len(rest.tables), rest.script) == (source, 1, [])
    said = [record.getMessage() for record in caplog.records if "refused the sort order" in record.getMessage()]
    assert all("Stage create is not supported" in text for text in said)


def test_changed_field_ids_are_refused(catalog: TableCatalog, rest: Rest) -> None:
    rest.renumbers = True
    for changed in ("key.__raw__ has 4 instead of 100", "kafka.partition has 5 instead of 10"):
        with pytest.raises(CatalogRefused, match=f"other field ids: {changed}"):
            catalog.ensure(TOPIC, change())
    assert len(rest.tables) == 1


def test_names_swapped_since_an_empty_table_was_made(catalog: TableCatalog, rest: Rest) -> None:
    first, second = (NestedField(101, "a", LongType()), NestedField(102, "b", LongType()))
    made = catalog.ensure(TOPIC, change(first, second))
    swapped = change(NestedField(101, "b", LongType()), NestedField(102, "a", LongType()), version=2)
    assert catalog.ensure(TOPIC, swapped).iceberg.metadata.table_uuid == made.iceberg.metadata.table_uuid
    assert len(rest.tables) == 1


def test_a_refusal_of_more_than_the_order_is_raised(catalog: TableCatalog, rest: Rest) -> None:
    rest.script = [refuse_with_status, refuse_with_status]
    with pytest.raises(CatalogRefused, match="Stage create"):
        catalog.ensure(TOPIC, change())
    assert (rest.script, rest.tables) == ([], {})


def test_another_refusal_is_no_lack_of_staging(catalog: TableCatalog, rest: Rest) -> None:
    rest.refusal = 403
    with pytest.raises(CatalogDenied):
        catalog.ensure(TOPIC, change())
    rest.refusal = 400
    rest.script = [lambda _: (_ for _ in ()).throw(refused(400))]
    with pytest.raises(CatalogRefused, match="Stage create"):
        catalog.ensure(TOPIC, change())
    assert not rest.tables


def test_an_empty_table_is_taken_over(catalog: TableCatalog, rest: Rest) -> None:
    rest.namespaces.add(("kafka",))
    mine = rest.create_table(TOPIC.table, change().schema).metadata.table_uuid
    with pytest.raises(NotOurTable, match="was not made by the archiver") as caught:
        catalog.ensure(TOPIC, change())
    assert caught.value.context["table_uuid"] == str(mine)
    assert catalog.is_blank(TOPIC.table)
    made = catalog.ensure(TOPIC, change(), adopts=True)
    assert (made.uuid, made.schema.as_struct()) == (mine, change().schema.as_struct())
    assert not catalog.is_blank(TOPIC.table)
    assert catalog.ensure(TOPIC, change()).uuid == mine


def test_only_an_empty_plain_table_that_fits_is_taken_over(catalog: TableCatalog, rest: Rest) -> None:
    rest.namespaces.add(("kafka",))
    made = rest.create_table(TOPIC.table, change().schema).metadata
    columns = made.schema().fields
    spec = PartitionSpec(PartitionField(columns[0].field_id, 1000, IdentityTransform(), "p"), spec_id=1)
    order = SortOrder(SortField(columns[0].field_id, transform=IdentityTransform()), order_id=1)
    snapshot = Snapshot(snapshot_id=1, sequence_number=1, timestamp_ms=1, manifest_list="m", summary=None)
    fewer = Schema(*columns[:-1], schema_id=0)
    more = Schema(*columns, NestedField(field_id=99, name="more", field_type=LongType()), schema_id=0)
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("it has or had records", {"snapshots": [snapshot]}),
        ("it has the property archiver.topic", {"properties": {"archiver.topic": "orders"}}),
        ("its format version is 3", {"format_version": 3}),
        ("it is partitioned", {"partition_specs": [*made.partition_specs, spec]}),
        ("it has a sort order", {"sort_orders": [*made.sort_orders, order]}),
        ("its columns were changed", {"schemas": [*made.schemas, made.schema()]}),
        (f"it lacks the column {columns[-1].name}", {"schemas": [fewer]}),
        ("its column more is none of the topic's", {"schemas": [more]}),
    )
    for reason, update in changes:
        rest.tables[TOPIC.table] = made.model_copy(update=update)
        with pytest.raises(NotOurTable, match=f"can't be taken over: {reason}"):
            catalog.ensure(TOPIC, change(), adopts=True)
        assert rest.tables[TOPIC.table].table_uuid == made.table_uuid


def test_types_of_a_table_that_is_taken_over_fit(catalog: TableCatalog, rest: Rest) -> None:
    rest.namespaces.add(("kafka",))
    made = rest.create_table(TOPIC.table, change().schema).metadata
    text = made.model_dump_json()
    assert '"long"' in text
    rest.tables[TOPIC.table] = type(made).model_validate_json(text.replace('"long"', '"int"'))
    with pytest.raises(NotOurTable, match=r"its column \S+ is int, the topic's is long"):
        catalog.ensure(TOPIC, change(), adopts=True)
