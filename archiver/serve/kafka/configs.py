"""DescribeConfigs and client telemetry. Metrics are dropped; without the API, Java clients log complaints."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID, uuid4

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

_OF_TOPICS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": str(1 << 30),
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
_OF_BROKERS: Final = {"auto.create.topics.enable": "false", "delete.topic.enable": "false", "num.partitions": "1"}
_DEFAULT: Final = 5
_STRING: Final = 2
_PUSH_MILLIS: Final = 300_000
"""As at a broker. librdkafka counts microseconds in 32 bits: above 2,147 s it repeats at once, without an end."""


async def describe_configs(service: Service, request: Request) -> Values:
    return {
        "results": [await _described(service, resource) async for resource in request.in_turns(request.body.resources)]
    }


async def no_subscription(_service: Service, request: Request) -> Values:
    instance_id = request.body.client_instance_id
    return {
        "error_code": ErrorCode.none,
        "client_instance_id": instance_id if instance_id is not None and instance_id != UUID(int=0) else uuid4(),
        "subscription_id": 0,
        "accepted_compression_types": (),
        "push_interval": _PUSH_MILLIS,
        "telemetry_max_bytes": 1 << 20,
        "delta_temporality": True,
        "requested_metrics": (),
    }


async def pushed(_service: Service, _request: Request) -> Values:
    return {"error_code": ErrorCode.none}


async def _described(service: Service, resource: Any) -> Values:
    answer = {"resource_type": resource.resource_type, "resource_name": resource.resource_name, "error_message": None}
    match resource.resource_type:
        case 2:  # a topic
            if await service.topics.named(resource.resource_name) is None:
                return answer | {"error_code": service.without(resource.resource_name), "configs": []}
            settings = _OF_TOPICS
        case 4:  # a broker
            settings = _OF_BROKERS
        case 8 | 16 | 32:  # a broker's loggers, client metrics and groups have no settings here
            settings = {}
        case _:
            text = "an archive has settings of topics and of its node only"
            return answer | {"error_code": ErrorCode.invalid_request, "error_message": text, "configs": []}
    names = resource.configuration_keys
    chosen = {name: value for name, value in settings.items() if names is None or name in names}
    return answer | {"error_code": ErrorCode.none, "configs": [_setting(*setting) for setting in chosen.items()]}


def _setting(name: str, value: str) -> Values:
    return {
        "name": name,
        "value": value,
        "read_only": True,
        "config_source": _DEFAULT,
        "is_sensitive": False,
        "synonyms": (),
        "config_type": _STRING,
        "documentation": None,
    }
