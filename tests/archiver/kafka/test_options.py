"""Options have librdkafka's names; secrets stay secret."""

from __future__ import annotations

import pickle
import ssl
import subprocess
from pathlib import Path

import pytest

from archiver.errors import ConfigError
from archiver.kafka.options import parse_kafka_options

BOOTSTRAP = {"bootstrap.servers": "b1:9092, b2:9093"}
OAUTH = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "oauthbearer",
    "sasl.oauthbearer.method": "OIDC",
    "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
    "sasl.oauthbearer.client.id": "archiver",
    "sasl.oauthbearer.client.secret": "hunter2",
}
FUNCTION = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "oauthbearer",
    "sasl.token.provider": "tests.support.kafka.token_functions:lasting",
}
SASL = BOOTSTRAP | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "scram-sha-512",
    "sasl.username": "archiver",
    "sasl.password": "hunter2",
}


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pem")
    for name in ("one", "other"):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        subprocess.run([*command, "-keyout", f"{name}.key", "-out", f"{name}.pem"], cwd=folder, check=True)
    locked = ["openssl", "rsa", "-aes256", "-passout", "pass:hunter2", "-in", "one.key", "-out", "locked.key"]
    subprocess.run(locked, cwd=folder, check=True)
    return folder


def test_names_become_the_librarys() -> None:
    options = parse_kafka_options(
        BOOTSTRAP
        | {
            "client.id": "me",
            "socket.timeout.ms": "1500",
            "socket.connection.setup.timeout.ms": "700",
            "fetch.max.bytes": "1048576",
            "receive.message.max.bytes": "2000000",
            "isolation.level": "read_committed",
        }
    )
    made = options.client_configuration()
    assert made["bootstrap_servers"] == ["b1:9092", "b2:9093"]
    assert made["client_id"] == "me"
    assert made["security_protocol"] == "PLAINTEXT"
    assert made["ssl_context"] is None
    assert made["request_timeout_ms"] == 1500
    assert made["socket_connection_setup_timeout_ms"] == 700
    assert made["receive_message_max_bytes"] == 2_000_000
    assert options.fetch_bytes == 1 << 20


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [("sasl.mechanisms", "sasl.mechanism", "PLAIN"), ("request.timeout.ms", "socket.timeout.ms", "9")],
)
def test_two_names_for_one_option(alias: str, name: str, value: str) -> None:
    plain = {key: text for key, text in SASL.items() if key != name}
    assert parse_kafka_options(plain | {alias: value}) == parse_kafka_options(plain | {name: value})
    with pytest.raises(ConfigError, match=f"{alias} and {name}"):
        parse_kafka_options(plain | {alias: value, name: value})


def test_sasl() -> None:
    made = parse_kafka_options(SASL).client_configuration()
    assert (made["security_protocol"], made["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (made["sasl_plain_username"], made["sasl_plain_password"]) == ("archiver", "hunter2")
    assert made["ssl_context"].check_hostname


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"group.id": "g"}, "group.id is not supported .*no consumer group"),
        ({"auto.offset.reset": "earliest"}, "start_from"),
        ({"made.up": "1"}, "made.up is not supported"),
        ({"isolation.level": "read_uncommitted"}, "isolation.level"),
        ({"security.protocol": "tls"}, "security.protocol"),
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms"),
        ({"socket.timeout.ms": "0"}, "socket.timeout.ms"),
        ({"fetch.max.bytes": "3000000000"}, "fetch.max.bytes"),
        ({"fetch.max.bytes": "2000", "receive.message.max.bytes": "2000"}, "receive.message.max.bytes"),
        ({"bootstrap.servers": "b1:port"}, "HOST:PORT"),
        ({"bootstrap.servers": "b1:99999"}, "HOST:PORT"),
        ({"bootstrap.servers": " , "}, "bootstrap.servers"),
        ({"sasl.password": "hunter2"}, "sasl.password has no effect"),
        ({"ssl.ca.location": "/ca.pem"}, "ssl.ca.location has no effect"),
        ({"security.protocol": "ssl", "ssl.key.location": "/k"}, "go together"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}, "needs sasl.username, sasl.password"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "SCRAM-SHA-256"),
        (
            SASL | {"sasl.mechanism": "OAUTHBEARER"},
            "needs sasl.oauthbearer.method, sasl.oauthbearer.token.endpoint.url",
        ),
        (SASL | {"sasl.oauthbearer.scope": "kafka"}, "sasl.oauthbearer.scope has no effect .* SCRAM-SHA-512"),
        (OAUTH | {"sasl.password": "hunter2"}, "sasl.password has no effect .* OAUTHBEARER"),
        (OAUTH | {"sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method"),
        (OAUTH | {"sasl.oauthbearer.token.endpoint.url": "idp"}, "sasl.oauthbearer.token.endpoint.url"),
        (OAUTH | {"sasl.oauthbearer.extensions": "tenant"}, "write name=value"),
        (OAUTH | {"sasl.token.provider": "a:b"}, "sasl.oauthbearer.method, .*has no effect with .*sasl.token.provider"),
        (FUNCTION | {"sasl.token.provider": "a.b"}, "sasl.token.provider: .*write MODULE:FUNCTION"),
        (FUNCTION | {"https.ca.location": "/ca.pem"}, "https.ca.location has no effect"),
        (SASL | {"sasl.token.provider": "a:b"}, "sasl.token.provider has no effect .*SCRAM-SHA-512"),
        ({"sasl.token.provider": "a:b"}, "sasl.token.provider has no effect"),
        (OAUTH | {"security.protocol": "plaintext"}, "has no effect with security.protocol plaintext"),
        ({"sasl.oauthbearer.client.id": "x"}, "sasl.oauthbearer.client.id has no effect"),
        ({"sasl.oauthbearer.grant.type": "x"}, "sasl.oauthbearer.grant.type is not supported .*client credentials"),
        ({"enable.ssl.certificate.verification": "perhaps"}, "enable.ssl.certificate.verification"),
    ],
)
def test_wrong_options_are_named(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        parse_kafka_options(BOOTSTRAP | wrong)
    assert "hunter2" not in str(caught.value)


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_kafka_options({"group.id": "g", "client.id": ""})
    assert set(caught.value.context["options"]) == {"group.id", "client.id", "bootstrap.servers"}


def test_secrets_are_not_shown() -> None:
    options = parse_kafka_options(SASL)
    assert "hunter2" not in repr(options) + str(options) + str(options.model_dump_json())


def test_options_travel() -> None:
    options = parse_kafka_options(SASL)
    assert pickle.loads(pickle.dumps(options)) == options


def tls(pem: Path, **changes: str) -> ssl.SSLContext:
    files = {"ssl.ca.location": "one.pem", "ssl.certificate.location": "one.pem", "ssl.key.location": "one.key"}
    named = {name: str(pem / file) for name, file in (files | changes).items() if name.endswith("location")}
    rest = {name: value for name, value in changes.items() if not name.endswith("location")}
    made = parse_kafka_options(BOOTSTRAP | {"security.protocol": "ssl"} | named | rest).client_configuration()
    context: ssl.SSLContext = made["ssl_context"]
    return context


def test_tls(pem: Path) -> None:
    context = tls(pem)
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert len(context.get_ca_certs()) == 1
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert not tls(pem, **{"ssl.endpoint.identification.algorithm": "none"}).check_hostname
    assert tls(pem, **{"enable.ssl.certificate.verification": "false"}).verify_mode == ssl.CERT_NONE
    tls(pem, **{"ssl.key.location": "locked.key", "ssl.key.password": "hunter2"})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ssl.ca.location": "none.pem"}, "ssl.ca.location"),
        ({"ssl.ca.location": "one.key"}, "ssl.ca.location"),
        ({"ssl.certificate.location": "none.pem"}, "ssl.certificate.location"),
        ({"ssl.key.location": "none.key"}, "ssl.key.location"),
        ({"ssl.key.location": "other.key"}, "don't fit"),
        ({"ssl.key.location": "locked.key"}, "password"),
        ({"ssl.key.location": "locked.key", "ssl.key.password": "wrong-hunter2"}, "password"),
    ],
)
def test_files_that_do_not_work_are_named(pem: Path, changes: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        tls(pem, **changes)
    assert "hunter2" not in str(caught.value)
