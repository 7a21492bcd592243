"""Which versions of which API are answered, and by what."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

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
    versions,
)
from archiver.serve.kafka.distinct import without_repeats
from archiver.serve.kafka.fetch import fetch
from archiver.serve.kafka.frames import API_VERSIONS, Head, response_head
from archiver.serve.kafka.guards import Guard, Handler
from archiver.serve.kafka.kinds import load_ahead
from archiver.serve.kafka.messages import Values, answer, encoded
from archiver.serve.kafka.pauses import Pauses, may_pause
from archiver.serve.kafka.service import Request, Service
from archiver.serve.observing import Answered, error_in

SASL: Final = frozenset({17, 36})
_FETCH: Final = 1
_IN_TIME: Final = SASL | {API_VERSIONS, 8, 11, 12, 13, 14, 68}
"""What is answered at once whatever its client owes: a group's members are lost, or go back, where these are late."""
_ENCODED_AT_ONCE: Final = 500
"""Answers with more elements are encoded in a thread."""
BEFORE_AUTHENTICATION: Final = frozenset({API_VERSIONS}) | SASL
"""What a client may ask for before it has shown who it is."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API with the first and last version that is answered, and the guard that says who may ask for what."""

    name: str
    key: int
    least: int
    most: int
    handler: Handler
    guard: Guard

    def knows(self, version: int) -> bool:
        """Whether a version is answered."""
        return self.least <= version <= self.most


async def _versions(service: Service, request: Request) -> Values:
    software = [getattr(request.body, f"client_software_{each}", "") for each in ("name", "version")]
    if service.spreads_answers and may_pause(" ".join(software)):
        request.client.pauses = Pauses()
    return versions.versions((each.key, each.least, each.most) for each in APIS.values())


APIS: Final[Mapping[int, Api]] = {
    each.key: each
    for each in (
        Api("Produce", 0, 3, 13, refusals.produce, guards.nobody),
        Api("Fetch", 1, 4, 18, fetch, guards.fetching),
        Api("ListOffsets", 2, 1, 11, list_offsets.list_offsets, guards.list_offsets),
        Api("Metadata", 3, 0, 13, cluster.metadata, guards.metadata),
        Api("OffsetCommit", 8, 2, 10, offset_requests.offset_commit, group_guards.offset_commit),
        Api("OffsetFetch", 9, 1, 10, offset_requests.offset_fetch, group_guards.offset_fetch),
        Api("FindCoordinator", 10, 0, 6, cluster.find_coordinator, group_guards.find_coordinator),
        Api("JoinGroup", 11, 0, 9, group_requests.join_group, group_guards.join_group),
        Api("Heartbeat", 12, 0, 4, group_requests.heartbeat, group_guards.heartbeat),
        Api("LeaveGroup", 13, 0, 5, group_requests.leave_group, group_guards.leave_group),
        Api("SyncGroup", 14, 0, 5, group_requests.sync_group, group_guards.sync_group),
        Api("DescribeGroups", 15, 0, 6, group_descriptions.describe_groups, group_guards.describe_groups),
        Api("ListGroups", 16, 0, 5, group_descriptions.list_groups, group_guards.list_groups),
        Api("SaslHandshake", 17, 0, 1, authentication.sasl_handshake, guards.anybody),
        Api("ApiVersions", API_VERSIONS, 0, versions.MOST_ASKED, _versions, guards.anybody),
        Api("CreateTopics", 19, 2, 7, refusals.create_topics, guards.nobody),
        Api("DeleteTopics", 20, 1, 6, refusals.delete_topics, guards.nobody),
        Api("DeleteRecords", 21, 0, 2, refusals.delete_records, guards.nobody),
        Api("InitProducerId", 22, 0, 6, refusals.init_producer_id, guards.nobody),
        Api("OffsetForLeaderEpoch", 23, 2, 4, list_offsets.offset_for_leader_epoch, guards.epochs),
        Api("DescribeConfigs", 32, 1, 4, configs.describe_configs, guards.configs),
        Api("AlterConfigs", 33, 0, 2, refusals.alter_configs, guards.nobody),
        Api("SaslAuthenticate", 36, 0, 2, authentication.sasl_authenticate, guards.anybody),
        Api("CreatePartitions", 37, 0, 3, refusals.create_partitions, guards.nobody),
        Api("DeleteGroups", 42, 0, 2, group_descriptions.delete_groups, group_guards.delete_groups),
        Api("IncrementalAlterConfigs", 44, 0, 1, refusals.alter_configs, guards.nobody),
        Api("OffsetDelete", 47, 0, 0, offset_requests.offset_delete, group_guards.offset_delete),
        Api("DescribeCluster", 60, 0, 2, cluster.describe_cluster, guards.anybody),
        Api("ConsumerGroupHeartbeat", 68, 0, 1, consumer_group_requests.consumer_group_heartbeat, group_guards.beat),
        Api("ConsumerGroupDescribe", 69, 0, 1, consumer_group_requests.consumer_group_describe, group_guards.described),
        Api("GetTelemetrySubscriptions", 71, 0, 0, configs.no_subscription, guards.anybody),
        Api("PushTelemetry", 72, 0, 0, configs.pushed, guards.anybody),
        Api("DescribeTopicPartitions", 75, 0, 0, cluster.describe_topic_partitions, guards.topic_partitions),
    )
}
"""All APIs by their keys."""
_OF_READERS: Final = (API_VERSIONS, _FETCH, 2, 3)
"""ApiVersions, Fetch, ListOffsets and Metadata: a client needs them before its first record."""


def load_for_readers() -> None:
    """Load what requests of reading clients need, so that the first of them don't wait for it."""
    load_ahead((each.key, each.least, each.most) for each in map(APIS.__getitem__, _OF_READERS))


def api_of(head: Head) -> Api | None:
    """The API that answers a request; None for one that is not known in this version."""
    api = APIS.get(head.api_key)
    return api if api is not None and api.knows(head.version) else None


async def answered(service: Service, api: Api, head: Head, request: Request) -> tuple[list[bytes | memoryview], float]:
    """Answer a request: the header and the body of the response, and how many seconds its client has to wait then."""
    began = time.perf_counter()
    found = await _found(service, api, without_repeats(request))
    body = found if isinstance(found, list) else [await _encoded(request, head, found)]
    wait = _wait(service, request, sum(map(len, body)))
    if wait:
        millis = math.ceil(wait * 1000)
        if isinstance(found, list):
            body = fetch_response.throttled(found, millis)
        else:
            body = [await _encoded(request, head, {**found, "throttle_time": millis})]
    parts = [response_head(head), *body]
    service.traffic.answered(_summary(api, request, found, parts, time.perf_counter() - began))
    return parts, wait


async def _encoded(request: Request, head: Head, found: Values) -> bytes:
    """Encode an answer. If it has many elements, or took long to put together, that is done in a thread."""

    def work() -> bytes:
        return encoded(answer(head.api_key, head.version, found))

    turns = request.client.turns
    return await turns.in_thread(work) if turns.is_long or _has_many_elements(found) else work()


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


async def _found(service: Service, api: Api, request: Request) -> Values | list[bytes | memoryview]:
    access = request.client.login.access
    if access is not None and api.key not in _IN_TIME:
        requests, octets = service.quotas.owed(access.principal, asyncio.get_running_loop().time())
        if api.key == _FETCH and (requests or octets):  # also from another connection: as Kafka, with nothing
            return fetch_response.packed(request.version, ())
        if requests:
            await asyncio.sleep(requests)
    handler = partial(coordination.answered, api.handler)
    if access is None or access.is_open:
        return await handler(service, request)
    return await api.guard(handler, service, request)


def _wait(service: Service, request: Request, size: int) -> float:
    access = request.client.login.access
    if access is None or request.api_key in SASL:
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


def fallback(head: Head) -> list[bytes | memoryview] | None:
    """The answer to a version of ApiVersions that is too new, by which clients find one that both know.

    None for any other API: its client has asked for what was never advertised.
    """
    if head.api_key != API_VERSIONS:
        return None
    known = versions.versions(((each.key, each.least, each.most) for each in APIS.values()), ErrorCode(35))
    oldest = Head(head.api_key, 0, head.correlation_id)
    return [response_head(oldest), encoded(answer(head.api_key, 0, known))]
