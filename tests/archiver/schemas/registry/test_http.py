"""Requests to a schema registry."""

from __future__ import annotations

import time

import pytest

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError, SchemaRegistryUnavailable
from archiver.schemas.registry.settings import SchemaRegistrySettings
from tests.support.schemas.fake_registry import FakeRegistry, basic, fake_registry
from tests.support.schemas.shop_schemas import client, client_of_urls, order
from tests.support.servers.serving import answering


def test_faults_that_pass_are_waited_out(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.faults[:] = [500, 503, 429]
    assert client(registry).by_id(number) is not None
    registry.faults[:] = [500] * 3
    with pytest.raises(SchemaRegistryUnavailable, match="status=500") as caught:
        client(registry, attempts=3).by_id(number)
    assert caught.value.retryable


def test_nobody_answers(registry: FakeRegistry) -> None:
    nowhere = "http://127.0.0.1:9"
    with pytest.raises(SchemaRegistryUnavailable, match="does not answer"):
        client_of_urls((nowhere,), attempts=2).by_id(1)
    number = order(registry)
    both = client_of_urls((nowhere, registry.url), attempts=2)
    assert both.by_id(number) is not None


def test_identities(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.authorization = basic("me", "hush")
    assert client(registry, username="me", password="hush").by_id(number) is not None
    registry.authorization = "Bearer hush"
    assert client(registry, token="hush").by_id(number) is not None
    with pytest.raises(SchemaRegistryDenied, match="refuses the credentials") as caught:
        client(registry, token="wrong").by_id(number)
    assert not caught.value.retryable
    assert "wrong" not in f"{caught.value} {SchemaRegistrySettings(urls=(), token='wrong')}"


def test_another_server(registry: FakeRegistry) -> None:
    for path in ("/x", "/.."):
        with pytest.raises(SchemaRegistryError, match="no schema registry"):
            client_of_urls((registry.url + path,)).latest("s")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_named_and_not_followed(status: int) -> None:
    """Gateways lead to https, and to login pages."""
    location = "https://me:hush@registry.example.org/schemas/ids/1?token=hush"
    with (
        answering(status, {}, headers={"Location": location}) as url,
        pytest.raises(SchemaRegistryError, match="set `url` to that address") as caught,
    ):
        client_of_urls((url,)).by_id(1)
    assert caught.value.context["leads_to"] == "https://registry.example.org/schemas/ids/1"
    assert not caught.value.retryable
    assert "hush" not in str(caught.value)


def test_a_registry_that_failed_is_left_alone_for_a_while(registry: FakeRegistry) -> None:
    number = order(registry)
    resting = client(registry, attempts=3, rest=3600.0)
    registry.faults[:] = [503] * 3
    for _ in range(2):
        with pytest.raises(SchemaRegistryUnavailable):
            resting.by_id(number)
    assert len(registry.asked) == 3
    eager = client(registry, attempts=3, rest=0.0)
    registry.faults[:] = [503] * 3
    with pytest.raises(SchemaRegistryUnavailable):
        eager.by_id(number)
    assert eager.by_id(number) is not None


@pytest.mark.parametrize("status", [429, 503])
def test_a_registry_that_asks_to_wait_is_waited_for(registry: FakeRegistry, status: int) -> None:
    number = order(registry)
    registry.faults, registry.retry_after = [status], "1"
    started = time.monotonic()
    assert client(registry).by_id(number) is not None
    assert 1.0 <= time.monotonic() - started < 10.0


def test_throttling_registry_gets_the_requested_pause(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.faults, registry.retry_after = [503], "120"
    patient = client(registry, rest=0.0)
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(SchemaRegistryUnavailable) as caught:
            patient.by_id(number)
        assert caught.value.context["retry_after"] == 120.0
    assert time.monotonic() - started < 10.0
    assert len(registry.asked) == 1


def test_the_other_address_is_not_waited_for(registry: FakeRegistry) -> None:
    number = order(registry)
    with fake_registry() as busy:
        busy.faults, busy.retry_after = [503] * 9, "20"
        started = time.monotonic()
        both = client_of_urls((busy.url, registry.url))
        assert both.by_id(number) is not None
        assert time.monotonic() - started < 10.0
