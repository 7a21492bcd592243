"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of the classic protocol."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups import Joining, Syncing
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

_WITH_IDS_FIRST: Final = 4
_WITH_SKIPPED: Final = 9


async def join_group(service: Service, request: Request) -> Values:
    body = request.body
    session = body.session_timeout.total_seconds()
    rebalance = getattr(body, "rebalance_timeout", body.session_timeout).total_seconds()
    joined = await service.coordinator.join(
        body.group_id,
        Joining(
            member_id=body.member_id,
            instance_id=getattr(body, "group_instance_id", None),
            client_id=request.client_id,
            host=f"/{request.client.address.rpartition(':')[0]}",
            session_seconds=session,
            rebalance_seconds=max(0.0, rebalance),
            protocol_type=body.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in body.protocols),
            needs_id=request.version >= _WITH_IDS_FIRST,
            may_skip=request.version >= _WITH_SKIPPED,
            budget=service.budget(request),
        ),
    )
    may_be_null = request.version >= 7  # noqa: PLR2004 - before it, no protocol is an empty text
    return {
        "error_code": joined.error,
        "generation_id": joined.generation,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol if may_be_null else joined.protocol or "",
        "leader": joined.leader,
        "skip_assignment": joined.skips,
        "member_id": joined.member_id,
        "members": [
            {"member_id": member, "group_instance_id": instance, "metadata": metadata}
            for member, instance, metadata in joined.members
        ],
    }


async def sync_group(service: Service, request: Request) -> Values:
    body = request.body
    synced = await service.coordinator.sync(
        body.group_id,
        Syncing(
            member_id=body.member_id,
            instance_id=getattr(body, "group_instance_id", None),
            generation=body.generation_id,
            protocol_type=getattr(body, "protocol_type", None),
            protocol=getattr(body, "protocol_name", None),
            assignments={assignment.member_id: assignment.assignment for assignment in body.assignments},
            budget=service.budget(request),
        ),
    )
    return {
        "error_code": synced.error,
        "protocol_type": synced.protocol_type,
        "protocol_name": synced.protocol,
        "assignment": synced.assignment,
    }


async def heartbeat(service: Service, request: Request) -> Values:
    body = request.body
    instance = getattr(body, "group_instance_id", None)
    return {"error_code": service.coordinator.heartbeat(body.group_id, body.member_id, instance, body.generation_id)}


async def leave_group(service: Service, request: Request) -> Values:
    body = request.body
    members = getattr(body, "members", None)
    if members is None:
        return {"error_code": service.coordinator.leave(body.group_id, body.member_id, None)}
    left = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "error_code": service.coordinator.leave(body.group_id, member.member_id, member.group_instance_id),
        }
        async for member in request.in_turns(members)
    ]
    return {"error_code": ErrorCode.none, "members": left}
