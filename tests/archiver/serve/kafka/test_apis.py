"""The table of APIs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kio.index import load_request_schema

from archiver.serve.kafka import apis, coordination
from archiver.serve.kafka.apis import APIS, BEFORE_AUTHENTICATION, load_for_readers
from archiver.serve.kafka.messages import request_kind, response_kind
from archiver.wire.api_keys import ApiKey


def test_first_requests_of_readers_are_loaded_ahead() -> None:
    load_for_readers()
    before = request_kind.cache_info().misses, response_kind.cache_info().misses
    for key in (18, 3, 2, 1):
        for version in range(APIS[key].least, APIS[key].most + 1):
            assert request_kind(key, version).__api_key__ == response_kind(key, version).__api_key__ == key
            assert request_kind(key, version).__version__ == version
    assert (request_kind.cache_info().misses, response_kind.cache_info().misses) == before


def test_every_key_is_answered_and_named_as_in_kio() -> None:
    assert set(APIS) == set(ApiKey)
    for api in APIS.values():
        kind = load_request_schema(api.key, api.most)
        assert kind.__name__ == f"{api.name}Request"
        assert kind.__api_key__ == api.key


def keys(trait: str) -> set[int]:
    return {int(api.key) for api in APIS.values() if getattr(api, trait)}


def test_traits_say_what_each_request_needs() -> None:
    assert keys("waits") == {1, 11, 14}
    assert keys("is_timely") == {8, 11, 12, 13, 14, 17, 18, 36, 68}
    assert keys("before_login") == BEFORE_AUTHENTICATION == {17, 18, 36}
    assert keys("of_groups") == {8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69}
    assert keys("of_members") == {12, 13, 14}
    assert keys("of_offsets") == {9, 42, 47}
    assert keys("is_slow") == {8, 9}
    assert keys("is_kept") == {8, 42, 47}
    assert keys("ends_groups") == {42, 47}
    for trait in ("of_members", "of_offsets", "is_slow", "is_kept", "ends_groups"):
        assert keys(trait) <= keys("of_groups"), trait


def test_requests_that_name_groups_go_to_the_coordinator() -> None:
    named = set()
    for api in APIS.values():
        fields = {field for version in range(api.least, api.most + 1) for field in _fields(api.key, version)}
        if fields & {"group_id", "groups", "group_ids", "groups_names"}:
            named.add(int(api.key))
    assert named | {ApiKey.LIST_GROUPS} == keys("of_groups")


def _fields(key: int, version: int) -> set[str]:
    return set(request_kind(key, version).__dataclass_fields__)


@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.METADATA, ApiKey.LIST_OFFSETS])
def test_only_group_requests_pass_the_group_layer(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(*_: Any) -> Any:
        return {"answered": True}

    async def coordinated(*_: Any) -> Any:
        return {"coordinated": True}

    monkeypatch.setattr(coordination, "coordinated", coordinated)
    request: Any = SimpleNamespace(client=SimpleNamespace(login=SimpleNamespace(access=None)))
    answer = asyncio.run(apis.handled(SimpleNamespace(), replace(APIS[key], handler=handler), request))  # type: ignore[arg-type]
    assert answer == {"answered": True}
    group = asyncio.run(apis.handled(SimpleNamespace(), APIS[ApiKey.HEARTBEAT], request))  # type: ignore[arg-type]
    assert group == {"coordinated": True}
