from __future__ import annotations

import socket
import sys

import pytest
import requests
from pyiceberg import exceptions

from catalog.errors import CatalogDenied, CatalogRefused, CatalogUnreachable, MetadataUnwritable, TableError
from catalog.iceberg.rest import connect, in_our_words
from tests.support.servers.serving import answering


def connecting(uri: str, **properties: str) -> None:
    with connect({"uri": uri, **properties}, timeout_seconds=0.3):
        pass


def test_a_catalog_that_accepts_and_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CatalogUnreachable, match="no answer"):
            connecting(uri)
        with pytest.raises(CatalogUnreachable, match="no answer"):
            connecting(uri, credential="user:hush", **{"oauth2-server-uri": f"{uri}/token"})


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CatalogUnreachable, match=f"Is it running.*127.0.0.1:{port}") as caught:
        connecting(f"http://127.0.0.1:{port}")
    assert caught.value.retryable


def test_wrong_credentials_are_named_and_never_shown():
    refusal = {"error": "invalid_client", "error_description": "no such client"}
    with answering(401, refusal) as uri, pytest.raises(CatalogDenied, match=r"catalog\.credential") as caught:
        connecting(uri, credential="user:hush", **{"oauth2-server-uri": f"{uri}/token"})
    assert "hush" not in str(caught.value)
    assert not caught.value.retryable


def test_something_else_at_the_address():
    with (
        answering(200, "hello") as uri,
        pytest.raises(CatalogUnreachable, match="not one of the Iceberg REST protocol"),
    ):
        connecting(uri)


@pytest.mark.parametrize("properties", [{}, {"uri": "thrift://somewhere", "type": "hive"}])
def test_only_rest_catalogs_are_spoken(properties: dict[str, str]):
    with pytest.raises(CatalogRefused, match="REST"):
        connect(properties, timeout_seconds=1)


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (requests.ReadTimeout("slow"), CatalogUnreachable),
        (exceptions.CommitStateUnknownException("500"), CatalogUnreachable),
        (exceptions.ServiceUnavailableError("503"), CatalogUnreachable),
        (exceptions.ForbiddenError("403"), CatalogDenied),
        (exceptions.NoSuchNamespaceError("404"), CatalogRefused),
        (exceptions.BadRequestError("400"), CatalogRefused),
        (PermissionError("403"), CatalogDenied),
        (OSError("the store is away"), MetadataUnwritable),
    ],
)
def test_failures_in_our_words(raised: Exception, ours: type[TableError]):
    with pytest.raises(ours, match=r"kafka\.orders") as caught, in_our_words("http://catalog", "kafka.orders"):
        raise raised
    assert caught.value.__cause__ is raised


def test_a_setting_that_needs_another_package_is_told(monkeypatch: pytest.MonkeyPatch):
    """Signing by AWS's rules does, as Glue asks for it."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, pytest.raises(CatalogRefused, match="package boto3"):
        connecting(uri, **{"rest.sigv4-enabled": "true"})


def test_our_own_errors_pass():
    own = MetadataUnwritable("own")
    with pytest.raises(MetadataUnwritable) as caught, in_our_words("http://catalog"):
        raise own
    assert caught.value is own


def test_the_environment_is_asked_about_proxies_once_for_each_server(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def proxies_of(url: str, no_proxy: str | None = None) -> dict[str, str]:
        asked.append(url)
        return {"http": "http://127.0.0.1:9"} if "away" in url else {}

    monkeypatch.setattr("requests.sessions.get_environ_proxies", proxies_of)
    with answering(200, {"defaults": {}, "overrides": {}}) as uri, connect({"uri": uri}, timeout_seconds=3) as catalog:
        session = catalog._session
        for _ in range(3):
            session.get(f"{uri}/v1/config")
            with pytest.raises(requests.exceptions.ConnectionError):
                session.get("http://away.test/v1/config")
    here = [each for each in asked if each.startswith(uri)]
    assert len(here) <= 2, "one for each session: that of the configuration, and that of tables"
    assert len(asked) - len(here) == 1
