"""Topics that would share one table."""

from __future__ import annotations

import pytest

from archiver.config import TopicConfig
from archiver.topics.shared_tables import refuse_shared, tables_shared


def topics(*names: str) -> list[TopicConfig]:
    return [TopicConfig(name=name, table=f"kafka.{name.lower().replace('.', '_')}") for name in names]


@pytest.mark.parametrize(
    ("owner", "named", "refused"),
    [
        (("c", "orders"), (), ["Orders"]),
        (("c", "Orders"), ("orders",), ["orders"]),
        (("c", "elsewhere"), (), ["Orders", "orders"]),
        (("other", "orders"), (), ["Orders", "orders"]),
        (None, (), ["Orders", "orders"]),
        (None, ("Orders",), ["orders"]),
        (None, ("Orders", "orders"), ["Orders", "orders"]),
    ],
)
def test_one_topic_keeps_the_table(owner: tuple[str, str] | None, named: tuple[str, ...], refused: list[str]) -> None:
    owners = {} if owner is None else {"kafka.orders": owner}
    errors = refuse_shared(topics("Orders", "a.b", "orders"), owners, cluster_id="c", named=named)
    assert sorted(errors) == refused


def test_the_error_names_the_key_and_the_owner() -> None:
    (error,) = refuse_shared(topics("a.b", "a_b"), {"kafka.a_b": ("c", "a_b")}, cluster_id="c", named=()).values()
    assert error.message == "topics would share one table: set `table` for this one in its section"
    assert error.context == {"key": 'topics."a.b".table', "table": "kafka.a_b", "taken_by": "a_b"}


@pytest.mark.parametrize(
    ("names", "owner", "refused"),
    [
        (("ORDERS", "Orders", "orders"), "Orders", ["ORDERS", "orders"]),
        (("a.b", "A_B", "a_b", "c"), "a_b", ["A_B", "a.b"]),
        (("x..y", "x._y", "x.y"), "x..y", ["x._y"]),
        (("_a", ".a", "a_", "a."), ".a", ["_a", "a.", "a_"]),  # of a_ and a. neither has the table
        (
            ("EU.Orders.V1", "eu_orders_v1", "eu.orders_v1", "eu.orders.v2"),
            "eu.orders_v1",
            ["EU.Orders.V1", "eu_orders_v1"],
        ),
        (("9.1", "9_1", "91"), "9_1", ["9.1"]),
    ],
)
def test_one_of_many_keeps_the_table(names: tuple[str, ...], owner: str, refused: list[str]) -> None:
    table = topics(owner)[0].table
    errors = refuse_shared(topics(*names), {table: ("c", owner)}, cluster_id="c", named=())
    assert sorted(errors) == refused


def test_topics_with_a_table_each_share_none() -> None:
    assert not tables_shared(topics("a", "b"))
    assert tables_shared(topics("a", "A"))
