"""A topic archived through every way to authenticate, on a real broker; and what a person reads who may not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from archiver.errors import AccessDenied, BrokerUnavailable
from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.kafka.admin import ClusterAdmin
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka import token_functions
from tests.support.kafka.secured_broker import PASSWORD, USER, SecuredBroker, secured_broker
from tests.support.servers.oidc_server import TokenEndpoint, token_endpoint
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

RECORDS = 50


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint({USER: PASSWORD}) as running:
        yield running


@pytest.fixture(scope="module")
def topic(broker: SecuredBroker) -> str:
    name = unique("guarded")
    broker.topic(name)
    producer = Producer({"bootstrap.servers": broker.open_address, "batch.num.messages": 5})
    for number in range(RECORDS):
        producer.produce(name, value=b"%d" % number)
    assert producer.flush(30) == 0
    return name


def options(broker: SecuredBroker, endpoint: TokenEndpoint, way: str) -> dict[str, str]:
    files = broker.folder
    password = {"sasl.username": USER, "sasl.password": PASSWORD}
    trust = {"ssl.ca.location": str(files / "ca.pem")}
    identity = {"ssl.certificate.location": str(files / "client.crt"), "ssl.key.location": str(files / "client.key")}
    listener, more = {
        "PLAIN": ("PLAIN", {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"} | password),
        "SCRAM-SHA-256": ("SCRAM", {"security.protocol": "sasl_plaintext", "sasl.mechanism": way} | password),
        "SCRAM-SHA-512": ("SCRAM", {"security.protocol": "sasl_plaintext", "sasl.mechanism": way} | password),
        "SCRAM over TLS": (
            "SCRAMTLS",
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512"} | password | trust,
        ),
        "mutual TLS": ("MUTUAL", {"security.protocol": "ssl"} | trust | identity),
        "OAUTHBEARER": (
            "OAUTH",
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": endpoint.url,
                "sasl.oauthbearer.client.id": USER,
                "sasl.oauthbearer.client.secret": PASSWORD,
                "sasl.oauthbearer.scope": "kafka",
            },
        ),
    }[way]
    return {"bootstrap.servers": broker.addresses[listener]} | more


WAYS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM over TLS", "mutual TLS", "OAUTHBEARER")


@pytest.mark.parametrize("way", WAYS)
def test_a_topic_is_archived(
    stack: Stack, broker: SecuredBroker, endpoint: TokenEndpoint, topic: str, way: str
) -> None:
    config = stack.config({topic: {}}, kafka=options(broker, endpoint, way))
    assert archive_once(config, topic, engine=InlineEngine()).records == RECORDS


@pytest.mark.parametrize(
    ("way", "wrong"),
    [
        ("PLAIN", {"sasl.password": "wrong"}),
        ("SCRAM-SHA-512", {"sasl.password": "wrong"}),
        ("SCRAM-SHA-256", {"sasl.username": "nobody"}),
        ("OAUTHBEARER", {"sasl.oauthbearer.client.secret": "wrong"}),
        ("PLAIN", {"sasl.mechanism": "SCRAM-SHA-512"}),
    ],
)
def test_wrong_credentials_are_refused_at_once(
    broker: SecuredBroker, endpoint: TokenEndpoint, topic: str, way: str, wrong: dict[str, str]
) -> None:
    with BrokerClient(options(broker, endpoint, way) | wrong) as client, pytest.raises(AccessDenied) as refused:
        client.describe([topic])
    assert PASSWORD not in str(refused.value)


def test_a_token_that_the_broker_does_not_take_is_refused(
    broker: SecuredBroker, endpoint: TokenEndpoint, topic: str
) -> None:
    endpoint.life_seconds = -10.0
    asked = options(broker, endpoint, "OAUTHBEARER") | {"sasl.oauthbearer.scope": "another provider"}
    try:
        with BrokerClient(asked) as client, pytest.raises(AccessDenied):
            client.describe([topic])
    finally:
        endpoint.life_seconds = 3_600.0


def test_a_function_gives_tokens(
    stack: Stack, broker: SecuredBroker, endpoint: TokenEndpoint, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both clients: kafka-python's reads the topic, librdkafka's describes it."""
    monkeypatch.setenv(token_functions.ENDPOINT, json.dumps([endpoint.url, USER, PASSWORD]))
    asked = options(broker, endpoint, "OAUTHBEARER")
    asked = {name: value for name, value in asked.items() if not name.startswith("sasl.oauthbearer.")}
    asked["sasl.token.provider"] = f"{token_functions.__name__}:from_endpoint"
    assert archive_once(stack.config({topic: {}}, kafka=asked), topic, engine=InlineEngine()).records == RECORDS
    with ClusterAdmin(asked) as admin:
        assert "retention.ms" in admin.topic_settings(topic)


@pytest.mark.parametrize("missing", ["ssl.ca.location", "client certificate", "a stranger's certificate"])
def test_tls_without_trust_on_either_side_is_no_connection(
    broker: SecuredBroker, endpoint: TokenEndpoint, topic: str, missing: str
) -> None:
    asked = options(broker, endpoint, "mutual TLS") | {"socket.connection.setup.timeout.ms": "2000"}
    match missing:
        case "ssl.ca.location":
            del asked[missing]
        case "client certificate":
            del asked["ssl.certificate.location"], asked["ssl.key.location"]
        case _:
            asked["ssl.certificate.location"] = str(broker.folder / "stranger.crt")
            asked["ssl.key.location"] = str(broker.folder / "stranger.key")
    with BrokerClient(asked) as client, pytest.raises(BrokerUnavailable):
        client.describe([topic])


def test_an_endpoint_that_is_away_is_named(broker: SecuredBroker, endpoint: TokenEndpoint, topic: str) -> None:
    away = {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    asked = options(broker, endpoint, "OAUTHBEARER") | away | {"socket.connection.setup.timeout.ms": "1000"}
    with BrokerClient(asked) as client, pytest.raises(BrokerUnavailable, match=r"http://127\.0\.0\.1:1/token"):
        client.describe([topic])


def test_a_session_outlives_its_token(broker: SecuredBroker, endpoint: TokenEndpoint, topic: str) -> None:
    """The broker ends a session after two seconds unless it authenticates again."""
    with PartitionFetcher(options(broker, endpoint, "OAUTHBEARER"), topic, None, 0) as fetcher:
        for _ in range(5):
            assert fetcher.fetch(0).high_watermark == RECORDS
            time.sleep(1)
