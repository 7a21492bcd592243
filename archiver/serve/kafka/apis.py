"""The served APIs, their versions and handlers."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Final

from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from archiver.serve.kafka import (
    authentication,
    cluster,
    configs,
    consumer_group_requests,
    coordination,
    fetch_response,
    group_descriptions,
    group_guards,
    group_requests,
    guards,
    list_offsets,
    offset_requests,
    refusals,
)
from archiver.serve.kafka.api import Api
from archiver.serve.kafka.fetch import fetch
from archiver.serve.kafka.frames import RequestHead, response_head
from archiver.serve.kafka.guards import Guard, Handler
from archiver.serve.kafka.messages import Values, answer, encoded, request_kind, response_kind
from archiver.serve.kafka.pauses import Pauses, may_pause
from archiver.serve.kafka.request_reader import reader_of
from archiver.serve.kafka.service import Request, Service
from archiver.telemetry.serving import Answered, error_in
from archiver.wire.api_keys import ApiKey

_MOST_ASKED: Final = 4
"""The newest version of ApiVersions itself. A newer one is answered in the form of version 0, which all can read."""
_SASL: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_ENCODED_AT_ONCE: Final = 500
"""Answers with more elements are encoded in a thread."""


async def _versions(service: Service, request: Request) -> Values:
    software = [getattr(request.body, f"client_software_{field}", "") for field in ("name", "version")]
    if service.spreads_answers and may_pause(" ".join(software)):
        request.client.pauses = Pauses()
    return _known_versions()


def _known_versions(error: ErrorCode = ErrorCode.none) -> Values:
    keys = [
        {"api_key": int(api.key), "min_version": api.least, "max_version": api.most}
        for api in sorted(APIS.values(), key=attrgetter("key"))
    ]
    return {"error_code": error, "api_keys": keys}


def _api(key: ApiKey, least: int, most: int, handler: Handler, guard: Guard, **traits: bool) -> Api:
    return Api(key=key, least=least, most=most, handler=handler, guard=guard, **traits)


APIS: Final[Mapping[int, Api]] = {
    api.key: api
    for api in (
        _api(ApiKey.PRODUCE, 3, 13, refusals.produce, guards.nobody),
        _api(ApiKey.FETCH, 4, 18, fetch, guards.fetching, waits=True, of_readers=True),
        _api(ApiKey.LIST_OFFSETS, 1, 11, list_offsets.list_offsets, guards.list_offsets, of_readers=True),
        _api(ApiKey.METADATA, 0, 13, cluster.metadata, guards.metadata, of_readers=True),
        _api(
            ApiKey.OFFSET_COMMIT,
            2,
            10,
            offset_requests.offset_commit,
            group_guards.offset_commit,
            is_timely=True,
            of_groups=True,
            is_slow=True,
            is_kept=True,
        ),
        _api(
            ApiKey.OFFSET_FETCH,
            1,
            10,
            offset_requests.offset_fetch,
            group_guards.offset_fetch,
            of_groups=True,
            of_offsets=True,
            is_slow=True,
        ),
        _api(ApiKey.FIND_COORDINATOR, 0, 6, cluster.find_coordinator, group_guards.find_coordinator),
        _api(
            ApiKey.JOIN_GROUP,
            0,
            9,
            group_requests.join_group,
            group_guards.join_group,
            waits=True,
            is_timely=True,
            of_groups=True,
        ),
        _api(
            ApiKey.HEARTBEAT,
            0,
            4,
            group_requests.heartbeat,
            group_guards.heartbeat,
            is_timely=True,
            of_groups=True,
            of_members=True,
        ),
        _api(
            ApiKey.LEAVE_GROUP,
            0,
            5,
            group_requests.leave_group,
            group_guards.leave_group,
            is_timely=True,
            of_groups=True,
            of_members=True,
        ),
        _api(
            ApiKey.SYNC_GROUP,
            0,
            5,
            group_requests.sync_group,
            group_guards.sync_group,
            waits=True,
            is_timely=True,
            of_groups=True,
            of_members=True,
        ),
        _api(
            ApiKey.DESCRIBE_GROUPS,
            0,
            6,
            group_descriptions.describe_groups,
            group_guards.describe_groups,
            of_groups=True,
        ),
        _api(ApiKey.LIST_GROUPS, 0, 5, group_descriptions.list_groups, group_guards.list_groups, of_groups=True),
        _api(
            ApiKey.SASL_HANDSHAKE,
            0,
            1,
            authentication.sasl_handshake,
            guards.anybody,
            before_login=True,
            is_timely=True,
        ),
        _api(
            ApiKey.API_VERSIONS,
            0,
            _MOST_ASKED,
            _versions,
            guards.anybody,
            before_login=True,
            is_timely=True,
            of_readers=True,
        ),
        _api(ApiKey.CREATE_TOPICS, 2, 7, refusals.create_topics, guards.nobody),
        _api(ApiKey.DELETE_TOPICS, 1, 6, refusals.delete_topics, guards.nobody),
        _api(ApiKey.DELETE_RECORDS, 0, 2, refusals.delete_records, guards.nobody),
        _api(ApiKey.INIT_PRODUCER_ID, 0, 6, refusals.init_producer_id, guards.nobody),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, list_offsets.offset_for_leader_epoch, guards.epochs),
        _api(ApiKey.DESCRIBE_CONFIGS, 1, 4, configs.describe_configs, guards.configs),
        _api(ApiKey.ALTER_CONFIGS, 0, 2, refusals.alter_configs, guards.nobody),
        _api(
            ApiKey.SASL_AUTHENTICATE,
            0,
            2,
            authentication.sasl_authenticate,
            guards.anybody,
            before_login=True,
            is_timely=True,
        ),
        _api(ApiKey.CREATE_PARTITIONS, 0, 3, refusals.create_partitions, guards.nobody),
        _api(
            ApiKey.DELETE_GROUPS,
            0,
            2,
            group_descriptions.delete_groups,
            group_guards.delete_groups,
            of_groups=True,
            of_offsets=True,
            is_kept=True,
            ends_groups=True,
        ),
        _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, refusals.alter_configs, guards.nobody),
        _api(
            ApiKey.OFFSET_DELETE,
            0,
            0,
            offset_requests.offset_delete,
            group_guards.offset_delete,
            of_groups=True,
            of_offsets=True,
            is_kept=True,
            ends_groups=True,
        ),
        _api(ApiKey.DESCRIBE_CLUSTER, 0, 2, cluster.describe_cluster, guards.anybody),
        _api(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            0,
            1,
            consumer_group_requests.consumer_group_heartbeat,
            group_guards.beat,
            is_timely=True,
            of_groups=True,
        ),
        _api(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            0,
            1,
            consumer_group_requests.consumer_group_describe,
            group_guards.described,
            of_groups=True,
        ),
        _api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, configs.no_subscription, guards.anybody),
        _api(ApiKey.PUSH_TELEMETRY, 0, 0, configs.pushed, guards.anybody),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, cluster.describe_topic_partitions, guards.topic_partitions),
    )
}
"""All APIs by their keys."""
BEFORE_AUTHENTICATION: Final = frozenset(api.key for api in APIS.values() if api.before_login)
"""The APIs that are allowed before authentication."""


def load_for_readers() -> None:
    for api in APIS.values():
        for version in range(api.least, api.most + 1) if api.of_readers else ():
            load(api, version)


def load(api: Api, version: int) -> None:
    """Load a version's message classes, which takes up to 0.2 seconds."""
    reader_of(request_kind(api.key, version))
    entity_writer(response_kind(api.key, version))


def api_of(head: RequestHead) -> Api | None:
    api = APIS.get(head.api_key)
    return api if api is not None and api.knows(head.version) else None


async def respond(
    service: Service, api: Api, head: RequestHead, request: Request
) -> tuple[list[bytes | memoryview], float]:
    """Return header and body, and the seconds to throttle the client."""
    began = time.perf_counter()
    values_or_parts = await handled(service, api, request)
    body = values_or_parts if isinstance(values_or_parts, list) else [await encode(request, head, values_or_parts)]
    wait = _wait(service, request, sum(map(len, body)))
    if wait:
        millis = math.ceil(wait * 1000)
        if isinstance(values_or_parts, list):
            body = fetch_response.throttled(values_or_parts, millis)
        else:
            body = [await encode(request, head, {**values_or_parts, "throttle_time": millis})]
    parts = [response_head(head), *body]
    service.traffic.answered(_summary(api, request, values_or_parts, parts, time.perf_counter() - began))
    return parts, wait


async def encode(request: Request, head: RequestHead, found: Values) -> bytes:
    def work() -> bytes:
        return encoded(answer(head.api_key, head.version, found))

    return await request.client.turns.in_thread(work) if _has_many_elements(found) else work()


def _has_many_elements(found: Values) -> bool:
    values, count = [found], 0
    while values:
        for value in values.pop().values():
            if isinstance(value, list | tuple):
                count += len(value)
                if count > _ENCODED_AT_ONCE:
                    return True
                values += [element for element in value if isinstance(element, Mapping)]
    return False


async def handled(service: Service, api: Api, request: Request) -> Values | list[bytes | memoryview]:
    access = request.client.login.access
    if access is not None and not api.is_timely:
        requests, octets = service.quotas.owed(access.principal, asyncio.get_running_loop().time())
        if api.key is ApiKey.FETCH and (requests or octets):  # also from another connection: as Kafka, with nothing
            return fetch_response.packed(request.version, ())
        if requests:
            request.client.turns.end_long_work()  # what waits holds up no other request
            await asyncio.sleep(requests)
    handler = partial(coordination.coordinated, api) if api.of_groups else api.handler
    if access is None or access.is_open:
        return await handler(service, request)
    return await api.guard(handler, service, request)


def _wait(service: Service, request: Request, size: int) -> float:
    access = request.client.login.access
    if access is None or request.api_key in _SASL:
        return 0.0
    return service.quotas.wait(access.principal, size, asyncio.get_running_loop().time())


def _summary(
    api: Api,
    request: Request,
    found: Values | list[bytes | memoryview],
    parts: list[bytes | memoryview],
    seconds: float,
) -> Answered:
    access = request.client.login.access
    return Answered(
        api=api.name,
        version=request.version,
        client=request.client.address,
        client_id=request.client_id,
        seconds=seconds,
        sent_bytes=sum(map(len, parts)),
        principal=None if access is None else str(access.principal),
        error="none" if isinstance(found, list) else error_in(found),
    )


def fallback(head: RequestHead) -> list[bytes | memoryview] | None:
    """For an ApiVersions request of too new a version."""
    if head.api_key != ApiKey.API_VERSIONS:
        return None
    versions = _known_versions(ErrorCode.unsupported_version)
    oldest = RequestHead(head.api_key, 0, head.correlation_id)
    return [response_head(oldest), encoded(answer(head.api_key, 0, versions))]
