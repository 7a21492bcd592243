"""DescribeGroups, ListGroups and DeleteGroups. A group without members is listed as a classic one."""

from __future__ import annotations

from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups import AnyGroup, ClassicGroup, ConsumerGroup, GroupState
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service
from schema_mapping.errors import ContextError

_PROTOCOL_TYPE: Final = "consumer"
_DEAD: Final = "Dead"
_CLASSIC, _CONSUMER = "Classic", "Consumer"
_WITH_NOT_FOUND: Final = 6


async def describe_groups(service: Service, request: Request) -> Values:
    kept = await _kept(service)
    names = None if kept is None else frozenset(kept)
    groups = service.coordinator.groups
    return {
        "groups": [
            _described(groups.get(name), name, names, request.version)
            async for name in request.in_turns(request.body.groups)
        ]
    }


async def list_groups(service: Service, request: Request) -> Values:
    body = request.body
    kept = await _kept(service)
    if kept is None:
        return {"error_code": ErrorCode.coordinator_not_available, "groups": []}
    states = {state.lower() for state in getattr(body, "states_filter", ())}
    types = {kind.lower() for kind in getattr(body, "types_filter", ())}
    listed = []
    async for name in request.in_turns(sorted({*kept, *service.coordinator.groups})):
        group = service.coordinator.groups.get(name)
        state = group.state.value if group else GroupState.EMPTY.value
        kind = _CONSUMER if isinstance(group, ConsumerGroup) else _CLASSIC
        if (not states or state.lower() in states) and (not types or kind.lower() in types):
            listed.append(
                {"group_id": name, "protocol_type": _protocol_type(group), "group_state": state, "group_type": kind}
            )
    return {"error_code": ErrorCode.none, "groups": listed}


async def delete_groups(service: Service, request: Request) -> Values:
    return {
        "results": [
            {"group_id": group_id, "error_code": await _deleted(service, request, group_id)}
            async for group_id in request.in_turns(request.body.groups_names)
        ]
    }


async def _deleted(service: Service, request: Request, group_id: str) -> ErrorCode:
    if group_id in service.coordinator.groups:
        return ErrorCode.non_empty_group
    try:
        count = await service.kept(partial(service.offsets.delete, claim=request.claim), group_id)
    except ContextError:
        return ErrorCode.coordinator_not_available
    return ErrorCode.none if count else ErrorCode.group_id_not_found


async def _kept(service: Service) -> tuple[str, ...] | None:
    try:
        kept: tuple[str, ...] = await service.kept(service.offsets.groups)
    except ContextError:
        return None
    return kept


def _protocol_type(group: AnyGroup | None) -> str:
    return (group.protocol_type if isinstance(group, ClassicGroup) else None) or _PROTOCOL_TYPE


def _described(group: AnyGroup | None, name: str, kept: frozenset[str] | None, version: int) -> Values:
    if isinstance(group, ClassicGroup):
        return _with_members(group)
    is_empty = group is None and name in (kept or ())
    error, text = ErrorCode.none, None
    if group is None and kept is None:
        error, text = ErrorCode.coordinator_not_available, "the registry, which has the groups' offsets, is away"
    elif not is_empty and version >= _WITH_NOT_FOUND:
        error = ErrorCode.group_id_not_found
        text = f"there is no group {name}" if group is None else f"group {name} doesn't use the classic protocol"
    return {
        "error_code": error,
        "error_message": text,
        "group_id": name,
        "group_state": GroupState.EMPTY.value if is_empty else _DEAD,
        "protocol_type": _PROTOCOL_TYPE if is_empty else "",
        "protocol_data": "",
        "members": (),
    }


def _with_members(group: ClassicGroup) -> Values:
    is_settled = group.state is GroupState.STABLE
    return {
        "error_code": ErrorCode.none,
        "group_id": group.group_id,
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if is_settled else "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.host,
                "member_metadata": member.metadata(group.protocol) if is_settled else b"",
                "member_assignment": member.assignment if is_settled else b"",
            }
            for member in group.members.values()
        ],
    }
