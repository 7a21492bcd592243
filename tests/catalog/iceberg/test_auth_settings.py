"""pyiceberg's `auth` settings from flat names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from catalog.errors import CatalogUnreachable
from catalog.iceberg.auth_settings import AuthSettingError, check_auth, check_certificates, with_auth
from catalog.iceberg.rest import connect
from tests.support.servers.certificates import Authority
from tests.support.servers.serving import answering, serving

OAUTH = {
    "uri": "http://catalog",
    "auth.type": "oauth2",
    "auth.oauth2.client_id": "me",
    "auth.oauth2.client_secret": "secret",
    "auth.oauth2.token_url": "http://tokens",
}


def test_auth_becomes_a_table() -> None:
    properties = OAUTH | {"auth.oauth2.refresh-margin": "30", "warehouse": "w"}
    assert with_auth(properties) == {
        "uri": "http://catalog",
        "warehouse": "w",
        "auth": {
            "type": "oauth2",
            "oauth2": {
                "client_id": "me",
                "client_secret": "secret",
                "token_url": "http://tokens",
                "refresh_margin": 30,
            },
        },
    }
    google = with_auth({"auth.type": "google", "auth.google.scopes": "https://a, https://b"})
    assert google["auth"]["google"] == {"scopes": ["https://a", "https://b"]}
    check_auth(properties)
    check_auth({"uri": "http://catalog", "token": "t"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"auth.type": "saml"}, "catalog: auth.type can't be 'saml': write noop, basic, oauth2, google, entra, custom"),
        ({"auth.type": "basic"}, "catalog: auth.basic.username is missing"),
        ({"auth.google.scopes": "x"}, "catalog: auth.google has no effect with auth.type = 'oauth2'"),
        ({"auth.impl": "a.B"}, 'catalog: auth.impl (module.Class) goes with auth.type = "custom"'),
        ({"token": "t"}, "catalog: token has no effect with `auth`: leave one of the two out"),
        ({"auth.oauth2.expires_in": "soon"}, "catalog: expires_in is a number of seconds, not 'soon'"),
    ],
)
def test_settings_that_cannot_work(change: dict[str, str], message: str) -> None:
    with pytest.raises(AuthSettingError) as caught:
        check_auth(OAUTH | change, "catalog: ")
    assert str(caught.value) == message


def test_a_type_is_needed() -> None:
    with pytest.raises(AuthSettingError, match=r"auth\.type is missing"):
        check_auth({"auth.oauth2.client_id": "me"})


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tokens = 0
        self.seen: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.tokens += 1
        self._answer({"access_token": f"token-{self.server.tokens}", "expires_in": 1, "token_type": "bearer"})

    def do_GET(self) -> None:
        self.server.seen.append(self.headers["Authorization"])
        self._answer({"defaults": {}, "overrides": {}, "namespaces": []})

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def token_server() -> Iterator[_Server]:
    with serving(_Server()) as server:
        yield server


def test_tokens_are_renewed() -> None:
    with token_server() as server:
        uri = f"http://127.0.0.1:{server.server_port}"
        properties = OAUTH | {"uri": uri, "auth.oauth2.token_url": f"{uri}/tokens"}
        catalog = connect(properties, timeout_seconds=5)
        catalog.list_namespaces()
        catalog.close()
    assert server.tokens > 1, "a token that is about to expire is not used again"
    assert server.seen[0] == "Bearer token-1"
    assert server.seen[-1] != server.seen[0]


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("ssl.cabundle", "none.pem", "there is no file .*none.pem"),
        ("ssl.cabundle", "x" * 300, "can't be read: File name too long"),
        ("ssl.cabundle", "a.pem/ca.pem", "can't be read: Not a directory"),
        ("ssl.client.cert", ".", "can't be read: Is a directory"),
    ],
)
def test_certificates_that_cannot_be_read(tmp_path: Path, name: str, path: str, message: str) -> None:
    (tmp_path / "a.pem").touch()
    with pytest.raises(AuthSettingError, match=f"^catalog: {name}: .*{message}"):
        check_certificates({name: str(tmp_path / path)}, "catalog: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_certificates_that_permissions_hide(tmp_path: Path) -> None:
    folder = tmp_path / "hidden"
    folder.mkdir(mode=0)
    with pytest.raises(AuthSettingError, match="can't be read: Permission denied"):
        check_certificates({"ssl.cabundle": str(folder / "ca.pem")})
    with pytest.raises(AuthSettingError, match="can't be read: Permission denied"):
        check_certificates({"ssl.cabundle": str(folder)})


def test_a_folder_of_authorities_is_a_bundle(tmp_path: Path) -> None:
    check_certificates({"ssl.cabundle": str(tmp_path)})


def test_a_catalog_of_a_private_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Authority(tmp_path, "another").certificate))
    certificate, key = authority.issue("catalog", "IP:127.0.0.1")
    with answering(200, {"defaults": {}, "overrides": {}}, certificate=(certificate, key)) as uri:
        with pytest.raises(CatalogUnreachable, match="certificate verify failed"):
            connect({"uri": uri}, timeout_seconds=5)
        connect({"uri": uri, "ssl.cabundle": str(authority.certificate)}, timeout_seconds=5).close()


def test_a_catalog_that_demands_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("catalog", "IP:127.0.0.1")
    certificate, key = authority.issue("archiver")
    answer = {"defaults": {}, "overrides": {}}
    with answering(200, answer, certificate=pair, clients_of=authority.certificate) as uri:
        trusting = {"uri": uri, "ssl.cabundle": str(authority.certificate)}
        with pytest.raises(CatalogUnreachable):
            connect(trusting, timeout_seconds=5)
        identity = {"ssl.client.cert": str(certificate), "ssl.client.key": str(key)}
        connect(trusting | identity, timeout_seconds=5).close()
