"""`archiver check` in difficult environments."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import ApiVersionsRequest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.kafka import msk_iam
from tests.support.catalog.lossy_catalog import glue_proxy, nessie_proxy, s3_tables_proxy
from tests.support.catalog.signing_catalog import keyless, signing_proxy
from tests.support.kafka.fake_brokers import FakeCluster, fake_cluster, fetched, listed
from tests.support.kafka.record_batches import Record, build
from tests.support.kafka.redpanda_proxy import redpanda_proxy
from tests.support.schemas.fake_registry import fake_registry
from tests.support.servers.apicurio import apicurio
from tests.support.servers.pgbouncer import pgbouncer
from tests.support.servers.stack import Stack
from tests.support.storage.demanding_store import Demands, demanding_store

pytestmark = pytest.mark.integration

WRONG_KINDS = 'syntax = "proto3"; package s; message M { int32 a = 1; }'
PATIENT = {"socket.connection.setup.timeout.ms": "20000"}
BATCH = build([Record(value=b"x")] * 5)


@dataclass(slots=True)
class World:
    """`change` is made in the file at last."""

    sections: dict[str, dict[str, str]] = field(default_factory=dict)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    change: Callable[[Path], object] = lambda _: None


Maker = Callable[[Stack, Path], AbstractContextManager[World]]


def catalog_behind(proxy: Callable[[str], AbstractContextManager[Any]], **topics: dict[str, Any]) -> Maker:
    @contextmanager
    def world(stack: Stack, _: Path) -> Iterator[World]:
        with proxy(load_config(stack.config_path).catalog["uri"]) as running:
            yield World({"catalog": {"uri": running.uri}}, dict(topics))

    return world


def journal_in(demands: Demands) -> Maker:
    @contextmanager
    def world(*_: object) -> Iterator[World]:
        with demanding_store(demands) as store:
            settings = {f"journal.{name}": value for name, value in store.properties.items()}
            yield World({"archive": {"journal": "s3://lake/journal", **settings}})

    return world


def brokers(change: Callable[[FakeCluster], None]) -> Maker:
    @contextmanager
    def world(*_: object) -> Iterator[World]:
        with fake_cluster() as cluster:
            cluster.answers[ListOffsetsRequest] = lambda _, request: listed(
                0 if request.topics[0].partitions[0].timestamp == -2 else 5
            )
            cluster.answers[FetchRequest] = lambda *_: fetched(BATCH, end=5)
            change(cluster)
            yield World({"kafka": cluster.options | PATIENT}, {"t": {}})

    return world


def lacking_requests(cluster: FakeCluster) -> None:
    cluster.versions.pop(OffsetForLeaderEpochRequest)


def hanging_up(cluster: FakeCluster) -> None:
    lacking_requests(cluster)
    cluster.answers[ApiVersionsRequest] = lambda _, request: (
        cluster.api_versions() if request.API_VERSION <= 0 else None
    )


def corrupt(cluster: FakeCluster) -> None:
    lacking_requests(cluster)
    cluster.answers[FetchRequest] = lambda *_: fetched(BATCH[:-1] + b"!", end=5)


@contextmanager
def msk_without_credentials(_: Stack, folder: Path) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "none"))
        patch.setenv("AWS_CONFIG_FILE", str(folder / "none"))
        msk_iam.aws_session.cache_clear()
        with fake_cluster() as cluster:
            named = {"security.protocol": "sasl_ssl", "sasl.mechanism": "AWS_MSK_IAM", "sasl.aws.region": "eu-west-1"}
            yield World({"kafka": cluster.options | named}, {"t": {}})


def pooled(**settings: Any) -> Maker:
    @contextmanager
    def world(stack: Stack, folder: Path) -> Iterator[World]:
        with pgbouncer(stack.database(), folder, pool_size=5, **settings) as dsn:
            yield World({"registry": {"dsn": dsn}})

    return world


@contextmanager
def registry_without_the_subject(stack: Stack, _: Path) -> Iterator[World]:
    value = {"format": "protobuf", "message": "s.M", "wire_format": "confluent"}
    with fake_registry() as registry:
        yield World({"schema_registry": {"url": registry.url}}, {stack.topic(): {"value": value}})


@contextmanager
def values_of_another_schema(stack: Stack, _: Path) -> Iterator[World]:
    topic = stack.topic()
    value = {"format": "protobuf", "message": "s.M", "wire_format": "confluent", "subject": "m"}
    with fake_registry() as registry:
        registry.register("m", WRONG_KINDS)
        stack.produce(topic, *({"value": b'{"id": 1}'} for _ in range(5)))
        yield World({"schema_registry": {"url": registry.url}}, {topic: {"value": value}})


@contextmanager
def signing_alone(stack: Stack, _: Path) -> Iterator[World]:
    with signing_proxy(load_config(stack.config_path).catalog["uri"]) as signing:
        yield World(change=lambda config: keyless(config, signing.uri))


@contextmanager
def redpanda(stack: Stack, _: Path) -> Iterator[World]:
    topic = stack.topic()
    stack.produce(topic, *({"value": b"x"} for _ in range(5)))
    with redpanda_proxy(stack.bootstrap_servers) as proxy:
        yield World({"kafka": proxy.options}, {topic: {}})


@contextmanager
def deleted_schemas_in_apicurio(stack: Stack, folder: Path) -> Iterator[World]:
    """The first version of a subject, and the version that it refers to, are softly deleted."""
    topic = stack.topic()
    value = {"format": "protobuf", "message": "s.M", "wire_format": "confluent", "subject": "m"}
    with apicurio(folder) as url:
        registered = []
        for number in (1, 2):
            common = f'syntax = "proto3"; package s; message C {{ int32 c = 1; int32 d{number} = 2; }}'
            fields = f"C c = 1; int32 a = 2; int32 b{number} = 3;"
            text = f'syntax = "proto3"; package s; import "c.proto"; message M {{ {fields} }}'
            register(url, "c", {"schema": common})
            reference = {"name": "c.proto", "subject": "c", "version": number}
            registered.append(register(url, "m", {"schema": text, "references": [reference]}))
        for subject in ("m", "c"):
            requests.delete(f"{url}/subjects/{subject}/versions/1", timeout=30).raise_for_status()
        payload = b"\0" + registered[0].to_bytes(4, "big") + b"\0\x0a\x02\x08\x05\x10\x01"
        stack.produce(topic, *({"value": payload} for _ in range(5)))
        yield World({"schema_registry": {"url": url}}, {topic: {"value": value}})


def register(url: str, subject: str, schema: dict[str, Any]) -> int:
    body = {"schemaType": "PROTOBUF", **schema}
    answer = requests.post(f"{url}/subjects/{subject}/versions", json=body, timeout=30)
    answer.raise_for_status()
    return int(answer.json()["id"])


WORLDS: dict[str, tuple[Maker, str]] = {
    "Glue, no staged creation": (
        catalog_behind(glue_proxy),
        "without staged creation: made empty, then changed by one commit",
    ),
    "RustFS, no staged creation": (
        catalog_behind(lambda uri: glue_proxy(uri, 406)),
        "names can't be tried: the catalog has no staged creation",
    ),
    "S3 Tables, a name": (
        catalog_behind(s3_tables_proxy, audit={"table": "kafka._audit"}),
        "set another `table` for the topic",
    ),
    "Nessie, its order": (
        catalog_behind(nessie_proxy),
        "the catalog refuses sort orders of fields inside a struct, so tables have none",
    ),
    "a catalog that signs, and gives no keys": (signing_alone, "the catalog signs each request to the store"),
    "Redpanda": (redpanda, "a topic that was created again may have the same epochs"),
    "Apicurio, deleted schemas": (deleted_schemas_in_apicurio, "all of 5 sampled values decode"),
    "bucket that demands KMS": (journal_in(Demands(encryption="aws:kms")), r"s3\.sse\.type"),
    "store that refuses checksums": (journal_in(Demands(checksum_status=501)), r"s3\.checksums"),
    "brokers without epochs": (brokers(lacking_requests), "OffsetForLeaderEpoch"),
    "brokers that hang up at ApiVersions": (brokers(hanging_up), "described and read: 1 partition, 5 offsets"),
    "a corrupt batch": (brokers(corrupt), "the batch is corrupt"),
    "MSK without credentials": (msk_without_credentials, "there are no AWS credentials here"),
    "PgBouncer by transactions": (pooled(pool_mode="transaction"), "transaction"),
    "PgBouncer that resets nothing": (pooled(pool_mode="session", reset_query=""), "server_reset_query = DISCARD ALL"),
    "a registry without the subject": (registry_without_the_subject, "has no such subject: register its schema"),
    "values of another schema": (values_of_another_schema, "5 of 5 sampled values would stay raw"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_check_names_the_problem(stack: Stack, tmp_path: Path, name: str) -> None:
    maker, expected = WORLDS[name]
    with ExitStack() as stacked:
        world = stacked.enter_context(maker(stack, tmp_path))
        config = stack.config(world.topics or {stack.topic(): {}}, **world.sections)
        world.change(config)
        done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
    findings = json.loads(done.stdout)["checks"]
    bad = [finding for finding in findings if finding["outcome"] in {"failed", "warning"}]
    if path := os.environ.get("ARCHIVER_TEST_CHECK_OUTPUT"):
        with Path(path).open("a") as output:
            shown = [finding for finding in findings if finding in bad or re.search(expected, json.dumps(finding))]
            output.write(json.dumps({"world": name, "exit": done.exit_code, "findings": shown}) + "\n")
    text = json.dumps(findings)
    assert done.exit_code == (1 if any(finding["outcome"] == "failed" for finding in bad) else 0)
    assert re.search(expected, text), text
