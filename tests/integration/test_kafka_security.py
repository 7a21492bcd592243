"""Every way to authenticate at a broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from archiver.errors import AccessDenied, BrokerUnavailable
from archiver.kafka import BrokerClient, PartitionFetcher, msk_iam
from archiver.kafka.admin import ClusterAdmin
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka import token_functions
from tests.support.kafka.secured_broker import IAM_ACCOUNT, IAM_SESSION, PASSWORD, USER, SecuredBroker, secured_broker
from tests.support.servers.oidc_server import TokenEndpoint, token_endpoint
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

RECORDS = 50
IamAccount = tuple[str, str, str, str]
AsIam = Callable[[IamAccount], dict[str, str]]


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
        "AWS_MSK_IAM": (
            "IAM",
            {"security.protocol": "sasl_ssl", "sasl.mechanism": way, "sasl.aws.region": IAM_ACCOUNT[2]} | trust,
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
    if way != "OAUTHBEARER":
        with ClusterAdmin(options(broker, endpoint, way) | wrong) as admin, pytest.raises(AccessDenied):
            admin.topic_settings(topic)


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
    monkeypatch.setenv(token_functions.ENDPOINT, json.dumps([endpoint.url, USER, PASSWORD]))
    asked = options(broker, endpoint, "OAUTHBEARER")
    asked = {name: value for name, value in asked.items() if not name.startswith("sasl.oauthbearer.")}
    asked["sasl.token.provider"] = f"{token_functions.__name__}:from_endpoint"
    assert archive_once(stack.config({topic: {}}, kafka=asked), topic, engine=InlineEngine()).records == RECORDS
    with ClusterAdmin(asked) as admin:
        assert "retention.ms" in admin.topic_settings(topic)


@pytest.fixture
def as_iam(monkeypatch: pytest.MonkeyPatch, broker: SecuredBroker, endpoint: TokenEndpoint) -> AsIam:
    def give(account: IamAccount) -> dict[str, str]:
        key, secret, region, token = account
        for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        if token != "-":
            monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        msk_iam.aws_session.cache_clear()
        return options(broker, endpoint, "AWS_MSK_IAM") | {"sasl.aws.region": region}

    return give


@pytest.mark.parametrize("account", [IAM_ACCOUNT, IAM_SESSION], ids=["key", "session"])
def test_msk_iam_logs_in_both_clients(stack: Stack, topic: str, as_iam: AsIam, account: IamAccount) -> None:
    """kafka-python by AWS_MSK_IAM, librdkafka by OAUTHBEARER; the broker checks both signatures."""
    asked = as_iam(account)
    assert archive_once(stack.config({topic: {}}, kafka=asked), topic, engine=InlineEngine()).records == RECORDS
    with ClusterAdmin(asked) as admin:
        assert "retention.ms" in admin.topic_settings(topic)


@pytest.mark.parametrize(
    ("account", "message"),
    [
        ((IAM_ACCOUNT[0], "wrong", "eu-west-1", "-"), r"MSK refuses access key AKIDARCHIVER \(from env\)"),
        (("AKIDSTRANGER", "wrong", "eu-west-1", "-"), "that it may kafka-cluster:Connect"),
        ((*IAM_SESSION[:3], "session of yesterday"), "its session is not over"),
        ((*IAM_ACCOUNT[:2], "us-east-1", "-"), "in region us-east-1, .* that sasl.aws.region is the cluster's region"),
    ],
    ids=["secret", "key", "session", "region"],
)
def test_msk_refuses_other_signatures(topic: str, as_iam: AsIam, account: IamAccount, message: str) -> None:
    asked = as_iam(account)
    with BrokerClient(asked) as client, pytest.raises(AccessDenied, match=message) as refused:
        client.describe([topic])
    assert account[1] not in str(refused.value).split()
    with ClusterAdmin(asked) as admin, pytest.raises(AccessDenied, match="MSK refuses access key"):
        admin.topic_settings(topic)


def test_a_listener_without_iam_is_named(broker: SecuredBroker, topic: str, as_iam: AsIam) -> None:
    asked = as_iam(IAM_ACCOUNT) | {"bootstrap.servers": broker.addresses["SCRAMTLS"]}
    with BrokerClient(asked) as client, pytest.raises(AccessDenied, match="MSK listens for them on port 9098"):
        client.describe([topic])


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
    """The broker ends a session after two seconds without a new authentication."""
    with PartitionFetcher(options(broker, endpoint, "OAUTHBEARER"), topic, None, 0) as fetcher:
        for _ in range(5):
            assert fetcher.fetch(0).high_watermark == RECORDS
            time.sleep(1)
