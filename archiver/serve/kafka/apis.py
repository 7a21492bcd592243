"""Which versions of which API are answered, and by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode

from archiver.serve.kafka import (
    cluster,
    configs,
    consumer_group_requests,
    group_descriptions,
    group_requests,
    list_offsets,
    offset_requests,
    refusals,
    versions,
)
from archiver.serve.kafka.fetch import fetch
from archiver.serve.kafka.frames import API_VERSIONS, Head, response_head
from archiver.serve.kafka.messages import Values, answer, encoded
from archiver.serve.kafka.service import Request, Service

Handler: TypeAlias = Callable[[Service, Request], Awaitable[Values | list[bytes | memoryview]]]
"""Answers with the values of a message, or with a packed body."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API with the first and last version that is answered."""

    name: str
    key: int
    least: int
    most: int
    handler: Handler

    def knows(self, version: int) -> bool:
        """Whether a version is answered."""
        return self.least <= version <= self.most


async def _versions(_service: Service, _request: Request) -> Values:
    return versions.versions((each.key, each.least, each.most) for each in APIS.values())


APIS: Final[Mapping[int, Api]] = {
    each.key: each
    for each in (
        Api("Produce", 0, 3, 13, refusals.produce),
        Api("Fetch", 1, 4, 18, fetch),
        Api("ListOffsets", 2, 1, 11, list_offsets.list_offsets),
        Api("Metadata", 3, 0, 13, cluster.metadata),
        Api("OffsetCommit", 8, 2, 10, offset_requests.offset_commit),
        Api("OffsetFetch", 9, 1, 10, offset_requests.offset_fetch),
        Api("FindCoordinator", 10, 0, 6, group_requests.find_coordinator),
        Api("JoinGroup", 11, 0, 9, group_requests.join_group),
        Api("Heartbeat", 12, 0, 4, group_requests.heartbeat),
        Api("LeaveGroup", 13, 0, 5, group_requests.leave_group),
        Api("SyncGroup", 14, 0, 5, group_requests.sync_group),
        Api("DescribeGroups", 15, 0, 6, group_descriptions.describe_groups),
        Api("ListGroups", 16, 0, 5, group_descriptions.list_groups),
        Api("ApiVersions", API_VERSIONS, 0, versions.MOST_ASKED, _versions),
        Api("CreateTopics", 19, 2, 7, refusals.create_topics),
        Api("DeleteTopics", 20, 1, 6, refusals.delete_topics),
        Api("DeleteRecords", 21, 0, 2, refusals.delete_records),
        Api("InitProducerId", 22, 0, 6, refusals.init_producer_id),
        Api("OffsetForLeaderEpoch", 23, 2, 4, list_offsets.offset_for_leader_epoch),
        Api("DescribeConfigs", 32, 1, 4, configs.describe_configs),
        Api("AlterConfigs", 33, 0, 2, refusals.alter_configs),
        Api("CreatePartitions", 37, 0, 3, refusals.create_partitions),
        Api("DeleteGroups", 42, 0, 2, group_descriptions.delete_groups),
        Api("IncrementalAlterConfigs", 44, 0, 1, refusals.alter_configs),
        Api("OffsetDelete", 47, 0, 0, offset_requests.offset_delete),
        Api("DescribeCluster", 60, 0, 2, cluster.describe_cluster),
        Api("ConsumerGroupHeartbeat", 68, 0, 1, consumer_group_requests.consumer_group_heartbeat),
        Api("ConsumerGroupDescribe", 69, 0, 1, consumer_group_requests.consumer_group_describe),
        Api("GetTelemetrySubscriptions", 71, 0, 0, configs.no_subscription),
        Api("PushTelemetry", 72, 0, 0, configs.pushed),
        Api("DescribeTopicPartitions", 75, 0, 0, cluster.describe_topic_partitions),
    )
}
"""All APIs by their keys."""


def api_of(head: Head) -> Api | None:
    """The API that answers a request; None for one that is not known in this version."""
    api = APIS.get(head.api_key)
    return api if api is not None and api.knows(head.version) else None


async def answered(service: Service, api: Api, head: Head, request: Request) -> list[bytes | memoryview]:
    """Answer a request: the header and the body of the response."""
    found = await api.handler(service, request)
    body = found if isinstance(found, list) else [encoded(answer(head.api_key, head.version, found))]
    return [response_head(head), *body]


def fallback(head: Head) -> list[bytes | memoryview] | None:
    """The answer to a version of ApiVersions that is too new, by which clients find one that both know.

    None for any other API: its client has asked for what was never advertised.
    """
    if head.api_key != API_VERSIONS:
        return None
    known = versions.versions(((each.key, each.least, each.most) for each in APIS.values()), ErrorCode(35))
    oldest = Head(head.api_key, 0, head.correlation_id)
    return [response_head(oldest), encoded(answer(head.api_key, 0, known))]
