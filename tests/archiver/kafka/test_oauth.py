"""Tokens from a real HTTP endpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

from archiver.kafka.oauth import OidcClient, OidcTokens, tokens_of
from archiver.kafka.protocol_errors import is_transient, refuses_credentials
from tests.support.servers.oidc_server import TokenEndpoint, token_endpoint


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint({"archiver": "hunter2"}) as running:
        yield running


def client(endpoint: TokenEndpoint, **changes: str) -> OidcClient:
    made = {"endpoint": endpoint.url, "client_id": "archiver", "client_secret": "hunter2"} | changes
    return OidcClient(**made)


def test_token_is_reused_for_most_of_its_lifetime(endpoint: TokenEndpoint) -> None:
    tokens = OidcTokens(client(endpoint, scope="kafka read"))
    assert tokens.token() == tokens.token()
    assert endpoint.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka read"]}]
    endpoint.life_seconds = 0.0001
    short = OidcTokens(client(endpoint))
    short.token()
    short.token()
    assert len(endpoint.asked) == 3


def test_one_provider_serves_a_process(endpoint: TokenEndpoint) -> None:
    assert tokens_of(client(endpoint)) is tokens_of(client(endpoint))
    assert tokens_of(client(endpoint)) is not tokens_of(client(endpoint, scope="other"))


def test_extensions_go_along(endpoint: TokenEndpoint) -> None:
    assert OidcTokens(client(endpoint, extensions="tenant=a, pool=b=c")).extensions() == {"tenant": "a", "pool": "b=c"}


def test_a_refusal_is_told_without_the_secret(endpoint: TokenEndpoint) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match=r"401: who are you\?") as refused:
        OidcTokens(client(endpoint, client_secret="wrong-hunter2")).token()
    assert refuses_credentials(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(client(endpoint))


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_endpoint_is_asked_again_later(endpoint: TokenEndpoint, status: int) -> None:
    endpoint.status = status
    with pytest.raises(KafkaConnectionError, match=str(status)) as busy:
        OidcTokens(client(endpoint)).token()
    assert is_transient(busy.value)


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(KafkaConnectionError, match=r"http://127\.0\.0\.1:1/token gives no answer"):
        OidcTokens(OidcClient(endpoint="http://127.0.0.1:1/token", client_id="a", client_secret="b")).token()
