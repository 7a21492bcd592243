"""The embedded stack, judged by other projects' clients."""

from __future__ import annotations

import io
import stat

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka.admin import ConfigResource, ResourceType
from minio import Minio
from minio.error import S3Error
from pyiceberg.catalog import load_catalog

from archiver.config import load_config
from archiver.local import LocalStack
from tests.support.catalog.choice import of_the_stacks_own_catalog
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


def s3(stack: Stack, *, secret_key: str | None = None) -> Minio:
    host = stack.s3_endpoint.removeprefix("http://")
    return Minio(host, access_key=stack.access_key, secret_key=secret_key or stack.secret_key, secure=False)


def test_topic_round_trip_with_any_timestamp_and_large_messages(stack: Stack):
    topic = stack.topic()
    big = b"x" * (20 << 20)
    stack.produce(
        topic,
        {"value": b"past", "timestamp": 1},
        {"value": b"future", "timestamp": 4_102_444_800_000},
        {"value": big},
        message_max_bytes=64 << 20,
    )
    consumer = stack.consumer(fetch_message_max_bytes=64 << 20)
    try:
        consumer.subscribe([topic])
        read = []
        while len(read) < 3:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            read.append(message)
    finally:
        consumer.close()
    assert [m.value() for m in read] == [b"past", b"future", big]
    assert [m.timestamp()[1] for m in read[:2]] == [1, 4_102_444_800_000]


def test_transactions_work_on_one_node(stack: Stack):
    topic = stack.topic()
    producer = stack.producer(transactional_id=unique("tx"))
    producer.init_transactions(30)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        end(30)
    consumer = stack.consumer()
    try:
        consumer.subscribe([topic])
        message = consumer.poll(20)
    finally:
        consumer.close()
    assert message is not None
    assert message.value() == b"committed"


def test_topics_are_not_made_by_accident_and_nothing_expires(stack: Stack):
    absent = unique("absent")
    producer = stack.producer(message_timeout_ms=1500)
    producer.produce(absent, b"x")
    producer.flush(10)
    assert absent not in stack.admin.list_topics(timeout=30).topics
    resource = ConfigResource(ResourceType.TOPIC, stack.topic(config={"segment.bytes": "1048576"}))
    settings = stack.admin.describe_configs([resource])[resource].result(30)
    assert settings["retention.ms"].value == "-1"
    assert settings["segment.bytes"].value == "1048576"


def test_databases_are_fresh(stack: Stack):
    with psycopg.connect(stack.database()) as first:
        first.execute("create table mine (id int)")
    with psycopg.connect(stack.database()) as second:
        row = second.execute("select count(*) from pg_tables where tablename = 'mine'").fetchone()
    assert row == (0,)


def test_passwords_are_scram_and_asked_for(stack: Stack):
    with psycopg.connect(stack.postgres_dsn) as connection:
        stored = connection.execute("select rolpassword from pg_authid where rolname = current_user").fetchone()
    assert stored is not None
    assert stored[0].startswith("SCRAM-SHA-256$")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(stack.postgres_dsn, password="wrong")


def test_objects_round_trip_by_a_client_of_somebody_else(stack: Stack):
    name, body = unique("object"), bytes(range(256)) * 40_000
    s3(stack).put_object(stack.bucket, name, io.BytesIO(body), len(body))
    response = s3(stack).get_object(stack.bucket, name)
    try:
        assert response.read() == body
    finally:
        response.close()
        response.release_conn()


def test_s3_asks_for_the_key(stack: Stack):
    with pytest.raises(S3Error, match="SignatureDoesNotMatch"):
        s3(stack, secret_key="0" * 40).list_buckets()


def test_tables_round_trip_through_the_catalog(stack: Stack):
    catalog = stack.catalog()
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    namespace, name = unique("ns"), unique("t")
    catalog.create_namespace(namespace)
    catalog.create_table(f"{namespace}.{name}", rows.schema).append(rows)
    again = load_catalog("again", **stack.catalog_properties).load_table(f"{namespace}.{name}")
    assert again.scan().to_arrow().to_pydict() == {"n": [1, 2, 3]}


@of_the_stacks_own_catalog("the Java catalog asks nobody who they are")
def test_the_catalog_asks_for_the_key(stack: Stack):
    with pytest.raises(Exception, match=r"(?i)unauthorized|invalid|401|denied"):
        load_catalog("x", **stack.catalog_properties | {"credential": "someone:else"}).list_namespaces()


def test_configurations_load_and_share_nothing(stack: Stack):
    topics = {"orders.eu": {"value": {"format": "raw"}, "partition_by": "hour"}}
    first, second = (load_config(stack.config(topics, archive={"spool_size": "64MiB"})) for _ in range(2))
    assert first.kafka["bootstrap.servers"] == stack.bootstrap_servers
    assert first.topic("orders.eu").partition_by == "hour"
    assert first.archive.spool_size == 64 << 20
    assert first.registry.dsn != second.registry.dsn
    assert first.topic("orders.eu").table != second.topic("orders.eu").table
    assert first.archive.spool != second.archive.spool


def test_the_stacks_own_files_are_private(stack: Stack):
    assert load_config(stack.config_path).registry.dsn == stack.postgres_dsn
    assert stat.S_IMODE(stack.config_path.stat().st_mode) == 0o600


@of_the_stacks_own_catalog("it compares the addresses of the stack as it is")
def test_up_again_finds_everything_up(stack: Stack):
    local = LocalStack(stack.endpoints.directory)
    assert local.ensure().started == ()
    assert local.status().ready
    assert local.endpoints == stack.endpoints
