"""Groups with the classic protocol: FindCoordinator, joins, syncs, heartbeats, leaves, and what tools ask."""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups import Group, GroupState, Joining, Syncing
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service
from schema_mapping.errors import ContextError

_GROUP: Final = 0
_TRANSACTION: Final = 1
_WITH_IDS_FIRST: Final = 4
_WITH_SKIPPED: Final = 9
_PROTOCOL_TYPE: Final = "consumer"
_DEAD: Final = "Dead"


async def find_coordinator(service: Service, request: Request) -> Values:
    """FindCoordinator: this node, for groups. There are no transactions and no share groups."""
    body = request.body
    kind = getattr(body, "key_type", _GROUP)
    node = service.identity
    error, text = ErrorCode.none, None
    if kind == _TRANSACTION:
        error = ErrorCode.transactional_id_authorization_failed
        text = "this is an archive, which can only be read: write to the Kafka cluster that is archived"
    elif kind != _GROUP:
        error, text = ErrorCode.invalid_request, "only groups have a coordinator here"
    found: dict[str, Any] = {"error_code": error, "error_message": text, "node_id": -1, "host": "", "port": -1}
    if error is ErrorCode.none:
        found |= {"node_id": node.node_id, "host": node.host, "port": node.port}
    keys = getattr(body, "coordinator_keys", ())
    return found | {"coordinators": [found | {"key": each} for each in keys]}


async def join_group(service: Service, request: Request) -> Values:
    """JoinGroup."""
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
            protocols=tuple((each.name, each.metadata) for each in body.protocols),
            needs_id=request.version >= _WITH_IDS_FIRST,
            may_skip=request.version >= _WITH_SKIPPED,
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
    """SyncGroup."""
    body = request.body
    synced = await service.coordinator.sync(
        body.group_id,
        Syncing(
            member_id=body.member_id,
            instance_id=getattr(body, "group_instance_id", None),
            generation=body.generation_id,
            protocol_type=getattr(body, "protocol_type", None),
            protocol=getattr(body, "protocol_name", None),
            assignments={each.member_id: each.assignment for each in body.assignments},
        ),
    )
    return {
        "error_code": synced.error,
        "protocol_type": synced.protocol_type,
        "protocol_name": synced.protocol,
        "assignment": synced.assignment,
    }


async def heartbeat(service: Service, request: Request) -> Values:
    """Heartbeat."""
    body = request.body
    instance = getattr(body, "group_instance_id", None)
    return {"error_code": service.coordinator.heartbeat(body.group_id, body.member_id, instance, body.generation_id)}


async def leave_group(service: Service, request: Request) -> Values:
    """LeaveGroup: one member, or from version 3 on several."""
    body = request.body
    members = getattr(body, "members", None)
    if members is None:
        return {"error_code": service.coordinator.leave(body.group_id, body.member_id, None)}
    told = [
        {
            "member_id": each.member_id,
            "group_instance_id": each.group_instance_id,
            "error_code": service.coordinator.leave(body.group_id, each.member_id, each.group_instance_id),
        }
        for each in members
    ]
    return {"error_code": ErrorCode.none, "members": told}


async def describe_groups(service: Service, request: Request) -> Values:
    """DescribeGroups: groups with members, and those that only have offsets."""
    kept = await _kept(service)
    return {"groups": [_described(service.coordinator.groups.get(each), each, kept) for each in request.body.groups]}


async def list_groups(service: Service, request: Request) -> Values:
    """ListGroups."""
    body = request.body
    kept = await _kept(service)
    if kept is None:
        return {"error_code": ErrorCode.coordinator_not_available, "groups": []}
    states = {each.lower() for each in getattr(body, "states_filter", ())}
    types = {each.lower() for each in getattr(body, "types_filter", ())}
    told = []
    for name in sorted({*kept, *service.coordinator.groups}):
        group = service.coordinator.groups.get(name)
        state = group.state.value if group else GroupState.EMPTY.value
        if (not states or state.lower() in states) and (not types or "classic" in types):
            kind = (group.protocol_type if group else None) or _PROTOCOL_TYPE
            told.append({"group_id": name, "protocol_type": kind, "group_state": state, "group_type": "Classic"})
    return {"error_code": ErrorCode.none, "groups": told}


async def delete_groups(service: Service, request: Request) -> Values:
    """DeleteGroups: the offsets of groups without members."""
    return {
        "results": [
            {"group_id": each, "error_code": await _deleted(service, each)} for each in request.body.groups_names
        ]
    }


async def _deleted(service: Service, group_id: str) -> ErrorCode:
    if group_id in service.coordinator.groups:
        return ErrorCode.non_empty_group
    try:
        count = await service.kept(service.offsets.delete, group_id)
    except ContextError:
        return ErrorCode.coordinator_not_available
    return ErrorCode.none if count else ErrorCode.group_id_not_found


async def _kept(service: Service) -> tuple[str, ...] | None:
    try:
        kept: tuple[str, ...] = await service.kept(service.offsets.groups)
    except ContextError:
        return None
    return kept


def _described(group: Group | None, name: str, kept: tuple[str, ...] | None) -> Values:
    if group is None:
        is_known = name in (kept or ())
        return {
            "error_code": ErrorCode.none if kept is not None else ErrorCode.coordinator_not_available,
            "group_id": name,
            "group_state": GroupState.EMPTY.value if is_known else _DEAD,
            "protocol_type": _PROTOCOL_TYPE if is_known else "",
            "protocol_data": "",
            "members": (),
        }
    is_settled = group.state is GroupState.STABLE
    return {
        "error_code": ErrorCode.none,
        "group_id": name,
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if is_settled else "",
        "members": [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "client_id": each.client_id,
                "client_host": each.host,
                "member_metadata": each.metadata(group.protocol) if is_settled else b"",
                "member_assignment": each.assignment if is_settled else b"",
            }
            for each in group.members.values()
        ],
    }
