"""Refuses writes with an error that clients don't retry.

librdkafka fetches only from brokers that support Produce.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.errors import BadRequest
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

_TEXT: Final = "this is an archive, which can only be read: write to the Kafka cluster that is archived"
_REFUSED: Final = {"error_code": ErrorCode.policy_violation, "error_message": _TEXT}


async def produce(_service: Service, request: Request) -> Values:
    """Raises BadRequest if the client wants no answer."""
    if request.body.acks == 0:
        raise BadRequest(_TEXT)
    responses = [
        {
            "name": getattr(topic, "name", None),
            "topic_id": getattr(topic, "topic_id", None),
            "partition_responses": [
                _not_produced(partition.index) async for partition in request.in_turns(topic.partition_data)
            ],
        }
        async for topic in request.in_turns(request.body.topic_data)
    ]
    return {"responses": responses}


async def init_producer_id(_service: Service, request: Request) -> Values:
    is_transactional = request.body.transactional_id is not None
    error = (
        ErrorCode.transactional_id_authorization_failed if is_transactional else ErrorCode.cluster_authorization_failed
    )
    return {"error_code": error, "producer_id": -1, "producer_epoch": -1}


async def create_topics(_service: Service, request: Request) -> Values:
    topics = request.in_turns(request.body.topics)
    return {"topics": [_REFUSED | {"name": topic.name, "topic_id": None, "configs": ()} async for topic in topics]}


async def create_partitions(_service: Service, request: Request) -> Values:
    return {"results": [_REFUSED | {"name": topic.name} async for topic in request.in_turns(request.body.topics)]}


async def delete_topics(_service: Service, request: Request) -> Values:
    topics = getattr(request.body, "topics", None)
    named = (
        ({"name": name, "topic_id": None} for name in request.body.topic_names)
        if topics is None
        else ({"name": topic.name, "topic_id": topic.topic_id} for topic in topics)
    )
    return {"responses": [_REFUSED | topic async for topic in request.in_turns(named)]}


async def delete_records(_service: Service, request: Request) -> Values:
    topics = request.in_turns(request.body.topics)
    return {
        "topics": [
            {"name": topic.name, "partitions": await request.listed(_not_deleted(topic))} async for topic in topics
        ]
    }


async def alter_configs(_service: Service, request: Request) -> Values:
    return {
        "responses": [
            _REFUSED | {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
            async for resource in request.in_turns(request.body.resources)
        ]
    }


def _not_produced(partition: int) -> Values:
    return {
        "index": partition,
        "error_code": ErrorCode.topic_authorization_failed,
        "base_offset": -1,
        "log_append_time": None,
        "record_errors": (),
        "error_message": _TEXT,
    }


def _not_deleted(topic: Any) -> Iterator[Values]:
    for partition in topic.partitions:
        yield {
            "partition_index": partition.partition_index,
            "low_watermark": -1,
            "error_code": ErrorCode.policy_violation,
        }
