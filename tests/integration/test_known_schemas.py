"""Schemas that Postgres remembers."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from catalog.model import SchemaIdentity
from catalog.registry import Registry
from catalog.registry.last_known import KnownSchemas
from tests.support.catalog.migrated import migrate_up_to
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

BEFORE_CONTEXTS = 20
HERE, THERE = "http://here", "http://there"


def test_schemas_by_context_and_guid(stack: Stack) -> None:
    news = KnownSchemas(
        schemas={
            SchemaIdentity(1): b"default",
            SchemaIdentity(1, ":.a:"): b"a",
            SchemaIdentity(2, ":.b:"): b"b",
            SchemaIdentity(UUID(int=1)): b"guid",
        },
        subjects={"orders": SchemaIdentity(1), ":.a:orders": SchemaIdentity(1, ":.a:")},
    )
    with Registry(stack.database()) as registry:
        orders = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")
        registry.last_known.remember_schemas(orders, HERE, news)
        registry.last_known.remember_schemas(orders, HERE, news)
        assert registry.last_known.recall_schemas(orders, HERE) == news
        assert registry.last_known.recall_schemas(orders, THERE) == KnownSchemas()
        later = KnownSchemas(subjects={":.a:orders": SchemaIdentity(2, ":.b:")})
        registry.last_known.remember_schemas(orders, HERE, later)
        assert registry.last_known.recall_schemas(orders, HERE).subjects[":.a:orders"] == SchemaIdentity(2, ":.b:")


def test_ids_of_older_archivers_in_wrong_contexts_are_forgotten(stack: Stack) -> None:
    dsn = stack.database()
    migrate_up_to(dsn, BEFORE_CONTEXTS)
    rows = [
        (1, HERE, "orders-value", 7),
        (1, THERE, "orders-value", 7),
        (2, HERE, ":.ctx:payments-value", 7),
        (2, HERE, "payments-key", 8),
        (2, THERE, "payments-value", 9),
    ]
    with psycopg.connect(dsn) as connection:
        for name in ("orders", "payments"):
            connection.execute("INSERT INTO topics (cluster_id, topic, table_name) VALUES ('c', %s, %s)", (name, name))
        for topic, url, subject, number in rows:
            connection.execute(
                "INSERT INTO registered_schemas (topic_id, registry, schema_id, files) VALUES (%s, %s, %s, 'x')",
                (topic, url, number),
            )
            connection.execute(
                "INSERT INTO registered_subjects (topic_id, registry, subject, schema_id) VALUES (%s, %s, %s, %s)",
                (topic, url, subject, number),
            )
    with Registry(dsn) as registry:
        topics = {topic.topic: topic for topic in registry.topics.every()}
        recalled = {
            (name, url): registry.last_known.recall_schemas(topics[name], url)
            for name in ("orders", "payments")
            for url in (HERE, THERE)
        }
    kept = KnownSchemas(schemas={SchemaIdentity(7): b"x"}, subjects={"orders-value": SchemaIdentity(7)})
    assert recalled["orders", HERE] == recalled["orders", THERE] == kept
    assert recalled["payments", HERE] == KnownSchemas()
    assert recalled["payments", THERE].subjects == {"payments-value": SchemaIdentity(9)}
