"""Unsafe configurations are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from archiver.access import Principal
from archiver.config import Config, load_config
from archiver.errors import ConfigError
from archiver.serve.security import Security
from tests.support.kafka.secured_broker import make_certificates
from tests.support.servers.tokens import TokenIssuer

TLS = '[serve.tls]\ncertificate = "server.crt"\nkey = "server.key"\n'
SASL = '[serve.sasl]\nmechanisms = ["SCRAM-SHA-512"]\n'
TOKENS = '[serve.sasl]\nmechanisms = ["OAUTHBEARER"]\n'
OAUTH = '[serve.oauth]\njwks_file = "jwks.json"\nissuer = "https://i"\naudience = "archive"\n'
ACL = '[[serve.acls]]\nprincipal = "User:*"\ntopics = ["*"]\n'
MINIMAL = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[catalog]
uri = "http://127.0.0.1:8181"
[registry]
dsn = "postgresql://archiver:hunter2@127.0.0.1:1/archiver?connect_timeout=1"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("security")
    make_certificates(made)
    (made / "jwks.json").write_text(TokenIssuer().jwks())
    (made / "empty").write_text("")
    return made


def config(folder: Path, text: str) -> Config:
    file = folder / "archiver.toml"
    file.write_text(MINIMAL + text)
    return load_config(file, {})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (TLS.replace("server.key", "missing.key"), "serve.tls.key"),
        (TLS.replace("server.crt", "missing.crt"), "serve.tls.certificate"),
        (TLS.replace("server.key", "client.key"), "serve.tls.key"),
        (TLS.replace("server.key", "empty"), "serve.tls.key"),
        (TLS + 'client_ca = "missing.pem"\n', "serve.tls.client_ca"),
        (TLS + 'client_ca = "empty"\n', "serve.tls.client_ca"),
        (SASL.replace("SCRAM-SHA-512", "PLAIN"), "serve.sasl.mechanisms"),
        (TOKENS, "serve.oauth"),
        (OAUTH, "serve.sasl"),
        (SASL + OAUTH, "serve.sasl.mechanisms"),
        (ACL, "serve.acls"),
        ("[serve]\nallow_anonymous = true\n" + SASL, "serve.allow_anonymous"),
        ("[serve]\nallow_anonymous = true\n" + TLS + 'client_ca = "ca.pem"\n', "serve.allow_anonymous"),
    ],
)
def test_what_can_not_work_is_refused(folder: Path, text: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Security(config(folder, text), is_loopback=True)
    assert refused.value.context["key"] == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (SASL.replace("SCRAM-SHA-512", "GSSAPI"), "serve.sasl.mechanisms"),
        ("[serve.sasl]\nmechanisms = []\n", "serve.sasl.mechanisms"),
        ("[serve.tls]\ncertificate = 'server.crt'\n", "serve.tls.key"),
        (OAUTH.replace("jwks_file", "jwks"), "serve.oauth"),
        (OAUTH + 'jwks_url = "https://h/k"\n', "serve.oauth"),
        (OAUTH.replace('jwks_file = "jwks.json"', 'jwks_url = "http://elsewhere/keys"'), "serve.oauth"),
        (OAUTH + 'algorithms = ["HS256"]\n', "serve.oauth.algorithms"),
        (OAUTH + 'algorithms = ["none"]\n', "serve.oauth.algorithms"),
        (OAUTH.replace('audience = "archive"\n', ""), "serve.oauth.audience"),
        (ACL.replace("User:*", "alice"), "serve.acls.0.principal"),
        (ACL.replace("User:*", "User:a*b"), "serve.acls.0.principal"),
        (ACL.replace('["*"]', '["a*b"]'), "serve.acls.0.topics"),
        (ACL.replace('topics = ["*"]', ""), "serve.acls.0"),
        (ACL + 'operations = ["alter"]\n', "serve.acls.0.operations"),
        (ACL + 'permission = "maybe"\n', "serve.acls.0.permission"),
        ('[[serve.quotas]]\nprincipal = "User:*"\n', "serve.quotas.0"),
    ],
)
def test_words_that_mean_nothing_are_refused(folder: Path, text: str, key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        config(folder, text)


@pytest.mark.parametrize("text", ["", TLS])
def test_nobody_is_anonymous_from_elsewhere_unless_it_is_allowed(folder: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Security(config(folder, text), is_loopback=False)
    assert refused.value.context["key"] == "serve.allow_anonymous"
    Security(config(folder, text), is_loopback=True)
    Security(config(folder, "[serve]\nallow_anonymous = true\n" + text + ACL), is_loopback=False)


@pytest.mark.parametrize("text", [SASL, TLS + SASL + ACL, TLS + 'client_ca = "ca.pem"\n' + ACL, TOKENS + OAUTH])
def test_who_has_to_show_who_they_are_may_come_from_anywhere(folder: Path, text: str) -> None:
    security = Security(config(folder, text), is_loopback=False)
    assert security.session(None).access is None


def test_users_are_looked_up_before_anybody_is_listened_to(folder: Path) -> None:
    async def begin() -> None:
        security = Security(config(folder, SASL), is_loopback=True)
        try:
            await security.begin()
        finally:
            await security.close()

    with pytest.raises(ConfigError, match="users are kept in the registry") as refused:
        asyncio.run(begin())
    assert refused.value.context["key"] == "serve.sasl.mechanisms"
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{}", "no keys"])
def test_keys_are_looked_up_before_anybody_is_listened_to(folder: Path, text: str, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(text)
    asked = config(folder, TOKENS + OAUTH.replace("jwks.json", str(tmp_path / "keys.json")))

    async def begin() -> None:
        security = Security(asked, is_loopback=True)
        try:
            await security.begin()
        finally:
            await security.close()

    with pytest.raises(ConfigError) as refused:
        asyncio.run(begin())
    assert refused.value.context["key"] == "serve.oauth"


def test_a_keys_password_may_be_a_reference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "secret of the key")
    loaded = config(folder, TLS + 'key_password = { env = "KEY_PASSWORD" }\n')
    assert loaded.serve.tls is not None
    assert loaded.serve.tls.key_password == "secret of the key"
    assert "secret of the key" not in repr(loaded.serve)
    assert loaded.serve.tls.certificate == folder / "server.crt"


def test_what_a_certificate_says_is_who_it_is(folder: Path) -> None:
    import ssl

    der = ssl.PEM_cert_to_DER_cert((folder / "client.crt").read_text())
    tls = TLS + 'client_ca = "ca.pem"\n'

    def who(text: str) -> Any:
        access = Security(config(folder, text), is_loopback=True).session(der).access
        return access.principal if access else None

    assert who(tls) == Principal("CN=client")
    assert str(who(tls + 'principal = "common_name"\n')) == "User:client"
    assert who(tls + SASL) is None, "with SASL, who a client is comes from there"
    assert str(who(TLS)) == "User:ANONYMOUS"
