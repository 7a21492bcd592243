"""`archiver replay --to-kafka` with authentication."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.kafka import msk_iam
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, from_kafka, wait_until_decided
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka import token_functions
from tests.support.kafka.group_commits import commit, committed_by
from tests.support.kafka.secured_broker import IAM_ACCOUNT, PASSWORD, USER, SecuredBroker, secured_broker
from tests.support.servers.oidc_server import TokenEndpoint, token_endpoint
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

PARTITIONS = 2
RECORDS = 400
WAYS = ("SCRAM over TLS", "mutual TLS", "AWS_MSK_IAM", "OAUTHBEARER", "sasl.token.provider")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def archived(stack: Stack) -> tuple[Path, str, str]:
    topic, group = stack.topic(PARTITIONS), unique("group")
    stack.produce(
        topic,
        *(
            {
                "key": b"%d" % (number % 9),
                "value": b"v%d" % number,
                "partition": number % PARTITIONS,
                "timestamp": 1 + number,
            }
            for number in range(RECORDS)
        ),
    )
    commit(stack, group, topic, {0: 50, 1: 60})
    config = stack.config({topic: {}})
    archive_once(config, topic, engine=InlineEngine())
    return config, topic, group


@pytest.fixture(scope="module")
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint({USER: PASSWORD}) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Login:
    broker: SecuredBroker
    endpoint: TokenEndpoint

    def __call__(self, way: str) -> dict[str, str]:
        return options(self.broker, way, self.endpoint)


@pytest.fixture
def login(broker: SecuredBroker, endpoint: TokenEndpoint) -> Login:
    return Login(broker, endpoint)


def options(broker: SecuredBroker, way: str, endpoint: TokenEndpoint) -> dict[str, str]:
    """OAUTHBEARER sessions last two seconds: both clients must authenticate again."""
    files = broker.folder
    match way:
        case "OAUTHBEARER":
            return {
                "bootstrap.servers": broker.addresses["OAUTH"],
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": way,
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": endpoint.url,
                "sasl.oauthbearer.client.id": USER,
                "sasl.oauthbearer.client.secret": PASSWORD,
                "sasl.oauthbearer.scope": "kafka",
            }
        case "sasl.token.provider":
            return {
                "bootstrap.servers": broker.addresses["OAUTH"],
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.token.provider": f"{token_functions.__name__}:from_endpoint",
            }
        case "SCRAM over TLS":
            return {
                "bootstrap.servers": broker.addresses["SCRAMTLS"],
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "ssl.ca.location": str(files / "ca.pem"),
            }
        case "AWS_MSK_IAM":
            return {
                "bootstrap.servers": broker.addresses["IAM"],
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": way,
                "sasl.aws.region": IAM_ACCOUNT[2],
                "ssl.ca.location": str(files / "ca.pem"),
            }
        case _:
            return {
                "bootstrap.servers": broker.addresses["MUTUAL"],
                "security.protocol": "ssl",
                "ssl.ca.location": str(files / "ca.pem"),
                "ssl.certificate.location": str(files / "client.crt"),
                "ssl.key.location": str(files / "client.key"),
            }


def move(config: Path, topic: str, target: str, given: dict[str, str], *more: str) -> Result:
    file = config.with_name(f"{target}.properties")
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    words = ["replay", topic, "--config", str(config), "--to-kafka", target, "--kafka-options", str(file), *more]
    return CliRunner().invoke(app, words)


def content(records: list[Seen]) -> list[tuple[object, ...]]:
    return [(record.partition, record.timestamp, record.key, record.value, record.headers) for record in records]


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, endpoint: TokenEndpoint) -> None:
    monkeypatch.setenv(token_functions.ENDPOINT, json.dumps([endpoint.url, USER, PASSWORD]))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", IAM_ACCOUNT[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", IAM_ACCOUNT[1])
    msk_iam.aws_session.cache_clear()


@pytest.mark.parametrize("way", WAYS)
def test_records_and_groups_arrive(
    stack: Stack, login: Login, archived: tuple[Path, str, str], tmp_path: Path, way: str
) -> None:
    config, topic, group = archived
    given = login(way)
    target = unique("copy")
    more = ("--create", "--translate-groups", group)
    done = move(config, topic, target, given, *more)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-2])["records"] == RECORDS
    secured = Stack(replace(stack.endpoints, bootstrap_servers=login.broker.open_address), tmp_path)
    wait_until_decided(secured, target, PARTITIONS)
    assert content(from_kafka(secured, target, PARTITIONS)) == content(from_kafka(stack, topic, PARTITIONS))
    assert committed_by(secured, group, target, PARTITIONS) == {0: 50, 1: 60}
    again = move(config, topic, target, given, *more)
    report = json.loads(again.stdout.splitlines()[-2])
    assert (again.exit_code, report["records"], report["resumed"]) == (0, 0, True)
    assert len(from_kafka(secured, target, PARTITIONS)) == RECORDS


@pytest.mark.parametrize(
    ("way", "wrong", "error"),
    [
        ("SCRAM over TLS", {"sasl.password": "not " + PASSWORD}, "AccessDenied"),
        (
            "SCRAM over TLS",
            {"ssl.ca.location": None, "socket.connection.setup.timeout.ms": "2000"},
            "BrokerUnavailable",
        ),
        ("AWS_MSK_IAM", {"sasl.aws.region": "us-east-1"}, "AccessDenied"),
        ("OAUTHBEARER", {"sasl.oauthbearer.client.secret": "not " + PASSWORD}, "AccessDenied"),
    ],
    ids=["password", "authority", "region", "secret"],
)
def test_a_target_that_refuses_the_login_is_named(
    login: Login, archived: tuple[Path, str, str], way: str, wrong: dict[str, str | None], error: str
) -> None:
    config, topic, _ = archived
    given = login(way) | wrong
    done = move(config, topic, unique("copy"), {name: text for name, text in given.items() if text is not None})
    assert done.exit_code == 1, done.output
    assert json.loads(done.stderr.splitlines()[-1])["error"]["kind"] == error
    assert PASSWORD not in done.output
