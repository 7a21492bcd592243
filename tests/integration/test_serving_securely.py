"""Authentication of real clients."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka import KafkaConsumer
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.kafka.java_records import java
from tests.support.kafka.secured_broker import make_certificates, openssl
from tests.support.servers.stack import Stack, unique
from tests.support.servers.tokens import AUDIENCE, ISSUER, TokenIssuer
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

RECORDS = 20
PASSWORD = "hunter2, with = and spaces"
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    address: str
    config: Path
    folder: Path
    open_topic: str
    secret: str
    issuer: TokenIssuer


@pytest.fixture(scope="module")
def guarded(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    make_certificates(folder)
    issuer = TokenIssuer()
    (folder / "jwks.json").write_text(issuer.jwks())
    open_topic, secret = stack.topic(name=unique("open")), stack.topic(name=unique("secret"))
    for topic in (open_topic, secret):
        stack.produce(topic, *({"value": b"%d" % number} for number in range(RECORDS)))
    serve = {
        "refresh": "200ms",
        "tls": {"certificate": str(folder / "server.crt"), "key": str(folder / "server.key"), "reload": "200ms"},
        "sasl": {"mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]},
        "oauth": {"jwks_file": str(folder / "jwks.json"), "issuer": ISSUER, "audience": AUDIENCE, "clock_skew": "2s"},
        "acls": [{"principal": "User:*", "topics": ["open*"], "groups": ["readers-*"]}],
    }
    config = stack.config({topic: {} for topic in (open_topic, secret)}, serve=serve)
    archive_once(config)
    (folder / "password").write_text(PASSWORD + "\n")
    users(config, "add", "reader", "--password-file", str(folder / "password"), "--iterations", "4096")
    with serving(config) as address:
        yield Guarded(
            address=address, config=config, folder=folder, open_topic=open_topic, secret=secret, issuer=issuer
        )


def users(config: Path, *words: str, given: str | None = None) -> str:
    done = CliRunner().invoke(app, ["users", *words, "--config", str(config)], input=given)
    assert done.exit_code == 0, done.output
    return done.stdout


@contextmanager
def serving(config: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "archiver", "serve", "kafka", "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen([*command, "--config", str(config)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["advertise"]
        finally:
            process.terminate()
        assert process.wait(20) == 128 + 15


WAYS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def options(guarded: Guarded, way: str, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "bootstrap.servers": guarded.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(guarded.folder / "ca.pem"),
        "sasl.mechanism": way,
    }
    if way == "OAUTHBEARER":
        asked["oauth_cb"] = lambda _: (guarded.issuer.token(), time.time() + 300.0)
    else:
        asked |= {"sasl.username": "reader", "sasl.password": PASSWORD}
    return asked | more


def by_librdkafka(topic: str, asked: dict[str, Any]) -> list[bytes]:
    reading = Consumer({"group.id": "readers-1", "enable.auto.commit": False, "auto.offset.reset": "earliest", **asked})
    try:
        reading.assign([TopicPartition(topic, 0, 0)])
        seen: list[bytes] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(seen) < RECORDS:
            assert time.monotonic() < deadline
            for message in reading.consume(RECORDS, 0.2):
                if message.error() is not None:
                    raise KafkaException(message.error())
                seen.append(message.value())
        return seen
    finally:
        reading.close()


def first_error(topic: str, asked: dict[str, Any], *, group: str = "readers-9") -> str:
    reading = Consumer({"group.id": group, **asked})
    reading.subscribe([topic])
    message = reading.poll(TIMEOUT_S)
    reading.close()
    assert message is not None
    assert message.error() is not None
    return str(message.error().name())


VALUES = [b"%d" % number for number in range(RECORDS)]


@pytest.mark.parametrize("way", WAYS)
def test_librdkafka_reads_by_each_mechanism(guarded: Guarded, way: str) -> None:
    assert by_librdkafka(guarded.open_topic, options(guarded, way)) == VALUES


def refused(asked: dict[str, Any]) -> set[str]:
    heard: list[KafkaError] = []
    client = Consumer({"group.id": "readers-1", **asked, "error_cb": heard.append})
    deadline = time.monotonic() + TIMEOUT_S
    while "_AUTHENTICATION" not in (names := {error.name() for error in heard}):
        assert time.monotonic() < deadline, names
        client.poll(0.1)
    client.close()
    return names


@pytest.mark.parametrize(
    ("way", "wrong"),
    [
        ("PLAIN", {"sasl.password": "wrong password"}),
        ("PLAIN", {"sasl.username": "nobody"}),
        ("SCRAM-SHA-256", {"sasl.password": "wrong password"}),
        ("SCRAM-SHA-512", {"sasl.username": "nobody"}),
    ],
)
def test_wrong_credentials_are_refused(guarded: Guarded, way: str, wrong: dict[str, str]) -> None:
    refused(options(guarded, way, **wrong))


def bad_tokens(issuer: TokenIssuer) -> dict[str, Callable[[], str]]:
    return {
        "expired": lambda: issuer.token(life_seconds=-5.0),
        "another audience": lambda: issuer.token(aud="others"),
        "alg none": lambda: issuer.token(algorithm="none", key=""),
        "a stranger's": lambda: TokenIssuer().token(),
    }


@pytest.mark.parametrize("kind", ["expired", "another audience", "alg none", "a stranger's"])
def test_bad_tokens_are_refused(guarded: Guarded, kind: str) -> None:
    token = bad_tokens(guarded.issuer)[kind]()
    refused(options(guarded, "OAUTHBEARER", oauth_cb=lambda _: (token, time.time() + 300.0)))


def test_a_session_outlives_its_token(guarded: Guarded) -> None:
    given: list[str] = []
    lost: list[KafkaError] = []

    def another(_: str) -> tuple[str, float]:
        given.append(guarded.issuer.token(life_seconds=3.0))
        return given[-1], time.time() + 3.0

    reading = Consumer(
        options(guarded, "OAUTHBEARER", oauth_cb=another, error_cb=lost.append) | {"group.id": "readers-2"}
    )
    reading.assign([TopicPartition(guarded.open_topic, 0, 0)])
    until = time.monotonic() + 8.0
    seen = 0
    while time.monotonic() < until:
        messages = reading.consume(RECORDS, 0.2)
        assert all(message.error() is None for message in messages)
        seen += len(messages)
    reading.close()
    assert (seen, lost) == (RECORDS, [])
    assert len(given) >= 3


def test_what_a_principal_may_not_read_is_refused_and_not_listed(guarded: Guarded) -> None:
    asked = options(guarded, "SCRAM-SHA-512")
    client = Consumer({"group.id": "readers-1", **asked})
    assert list(client.list_topics(timeout=TIMEOUT_S).topics) == [guarded.open_topic]
    for name in (guarded.secret, "no-such-topic"):
        topic = client.list_topics(name, TIMEOUT_S).topics[name]
        assert topic.error.name() == "TOPIC_AUTHORIZATION_FAILED"
    client.close()
    assert first_error(guarded.secret, asked) == "TOPIC_AUTHORIZATION_FAILED"
    assert first_error(guarded.open_topic, asked, group="others") == "GROUP_AUTHORIZATION_FAILED"


def test_kafka_python_and_aiokafka_read_by_scram(guarded: Guarded) -> None:
    asked: dict[str, Any] = {
        "bootstrap_servers": guarded.address,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "reader",
        "sasl_plain_password": PASSWORD,
        "ssl_context": ssl.create_default_context(cafile=str(guarded.folder / "ca.pem")),
    }
    named = {"group_id": "readers-3", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    reading = KafkaConsumer(guarded.open_topic, **asked, **named, consumer_timeout_ms=int(TIMEOUT_S * 1000))
    assert [next(reading).value for _ in range(RECORDS)] == VALUES
    reading.close()

    async def by_aiokafka() -> list[bytes]:
        async with AIOKafkaConsumer(guarded.open_topic, **asked, **named | {"group_id": "readers-4"}) as consumer:
            return [(await consumer.getone()).value for _ in range(RECORDS)]

    assert asyncio.run(asyncio.wait_for(by_aiokafka(), TIMEOUT_S)) == VALUES


def test_kafkas_own_tools_read_by_scram(guarded: Guarded, tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={guarded.folder / 'ca.pem'}\n"
        f'sasl.jaas.config={module} required username="reader" password="{PASSWORD}";\n'
    )
    output = java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", guarded.address, "--topic", guarded.open_topic, "--group", "readers-5"),
        *("--from-beginning", "--max-messages", str(RECORDS), "--command-config", str(properties)),
    )
    assert output.split() == [value.decode() for value in VALUES]


def test_a_changed_certificate_is_shown_and_a_broken_one_is_not(guarded: Guarded) -> None:
    def shown() -> str:
        host, _, port = guarded.address.rpartition(":")
        return ssl.get_server_certificate((host, int(port)))

    before = shown()
    waiting = Consumer(options(guarded, "PLAIN") | {"group.id": "readers-6"})
    waiting.list_topics(timeout=TIMEOUT_S)
    shutil.copy(guarded.folder / "stranger.key", guarded.folder / "server.key")
    time.sleep(0.6)
    assert shown() == before, "a key that doesn't fit must not be taken"
    openssl(guarded.folder, "req -newkey rsa:2048 -nodes -subj /CN=server2 -keyout server.key -out server.csr")
    openssl(
        guarded.folder,
        "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out server.crt",
    )
    eventually(lambda: shown() != before, "the server takes the new certificate", seconds=TIMEOUT_S, every=0.1)
    assert waiting.list_topics(timeout=TIMEOUT_S).topics, "who was connected goes on"
    waiting.close()
    assert by_librdkafka(guarded.open_topic, options(guarded, "PLAIN")) == VALUES


def test_users_come_and_go_while_the_server_runs(guarded: Guarded) -> None:
    users(guarded.config, "add", "guest", "--password-file", "-", given="first password")
    asked = options(guarded, "SCRAM-SHA-256", **{"sasl.username": "guest", "sasl.password": "first password"})
    assert by_librdkafka(guarded.open_topic, asked) == VALUES
    users(guarded.config, "password", "guest", "--password-file", "-", given="second password")
    assert by_librdkafka(guarded.open_topic, asked | {"sasl.password": "second password"}) == VALUES
    refused(asked)
    assert {user["name"] for user in json.loads(users(guarded.config, "list", "--json"))["users"]} == {
        "guest",
        "reader",
    }
    users(guarded.config, "remove", "guest", "--yes")
    time.sleep(2.1)
    refused(asked | {"sasl.password": "second password"})


def test_mutual_tls_knows_clients_by_their_certificates(stack: Stack, guarded: Guarded, tmp_path: Path) -> None:
    files = guarded.folder
    before, _, _ = guarded.config.read_text().partition("\n[serve]\n")
    before = before.replace(load_config(guarded.config).registry.dsn, stack.database())  # else both are one cluster
    config = tmp_path / "archiver.toml"
    config.write_text(
        f'{before}\n[serve.tls]\ncertificate = "{files / "server.crt"}"\nkey = "{files / "server.key"}"\n'
        f'client_ca = "{files / "ca.pem"}"\n'
        f'\n[[serve.acls]]\nprincipal = "User:CN=client"\ntopics = ["{guarded.open_topic}"]\ngroups = ["*"]\n'
    )
    config.chmod(0o600)
    with serving(config) as address:
        asked = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(files / "ca.pem"),
            "ssl.certificate.location": str(files / "client.crt"),
            "ssl.key.location": str(files / "client.key"),
        }
        assert by_librdkafka(guarded.open_topic, asked) == VALUES
        assert first_error(guarded.secret, asked) == "TOPIC_AUTHORIZATION_FAILED"
        stranger = asked | {
            "ssl.certificate.location": str(files / "stranger.crt"),
            "ssl.key.location": str(files / "stranger.key"),
        }
        nobody = {name: value for name, value in asked.items() if "certificate" not in name and "key" not in name}
        for keys in (stranger, nobody):
            client = Consumer({"group.id": "any", **keys})
            with pytest.raises(KafkaException):
                client.list_topics(timeout=2.0)
            client.close()
