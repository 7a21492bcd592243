"""Requests about groups are answered by the node that coordinates the group, and by no other.

This is asked once, before any handler sees the request. A request about several groups is answered for those that are
this node's; the others get the error by which clients look for their coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.guards import Handler
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service
from archiver.serve.nodes import Standing

Answer: TypeAlias = Values | list[bytes | memoryview]

_OFFSET_COMMIT: Final = 8
_OFFSET_FETCH: Final = 9
_LIST_GROUPS: Final = 16
_OFFSET_DELETE: Final = 47
_GROUPS_FROM: Final = 8
"""From this version on, OffsetFetch asks for several groups."""
_KEPT: Final = frozenset({_OFFSET_COMMIT, _OFFSET_DELETE})
"""What these did is in the registry, whatever became of the node meanwhile."""
_ERRORS: Final[Mapping[Standing, ErrorCode]] = {
    Standing.OTHER: ErrorCode.not_coordinator,
    Standing.LOADING: ErrorCode.coordinator_load_in_progress,
    Standing.UNKNOWN: ErrorCode.coordinator_not_available,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Several:
    """Where a request has its groups, where the answer has them, and what an entry of the answer needs."""

    asked: str
    told: str
    entry: Values
    writes: bool = False


_NOBODY: Final = {
    "error_message": None,
    "group_state": "",
    "protocol_type": "",
    "protocol_data": "",
    "members": (),
    "group_epoch": 0,
    "assignment_epoch": 0,
    "assignor_name": "",
}
_SEVERAL: Final[Mapping[int, _Several]] = {
    _OFFSET_FETCH: _Several(asked="groups", told="groups", entry={"topics": ()}),
    15: _Several(asked="groups", told="groups", entry=_NOBODY),
    42: _Several(asked="groups_names", told="results", entry={}, writes=True),
    69: _Several(asked="group_ids", told="groups", entry=_NOBODY),
}
_NOT_JOINED: Final = {
    "generation_id": -1,
    "protocol_type": None,
    "leader": "",
    "skip_assignment": False,
    "members": (),
}
_SINGLE: Final[Mapping[int, Values]] = {
    11: _NOT_JOINED,
    12: {},
    13: {"members": ()},
    14: {"protocol_type": None, "protocol_name": None, "assignment": b""},
    _OFFSET_DELETE: {"topics": ()},
    68: {"error_message": None, "member_id": None, "member_epoch": 0, "heartbeat_interval": 0, "assignment": None},
}
"""Requests about one group, and what their answers need beside the error."""


async def answered(handler: Handler, service: Service, request: Request) -> Answer:
    """Have a request answered, as far as it is about groups of this node."""
    key = request.api_key
    if key == _LIST_GROUPS:
        return await _listed(service, request, handler)
    if key in _SEVERAL and (key != _OFFSET_FETCH or request.version >= _GROUPS_FROM):
        return await _of_several(service, request, handler, _SEVERAL[key])
    if key == _OFFSET_FETCH:
        standing = service.cluster.standing(request.body.group_id)
        if standing is Standing.COORDINATOR:
            return await handler(service, request)
        return _no_offsets(request, _ERRORS[standing])
    if key in _SINGLE or key == _OFFSET_COMMIT:
        work = partial(handler, service, request)
        found = await service.cluster.coordinating(request.body.group_id, work, is_kept=key in _KEPT)
        return _refusal(request, _ERRORS[found]) if isinstance(found, Standing) else found
    return await handler(service, request)


async def _of_several(service: Service, request: Request, handler: Handler, several: _Several) -> Answer:
    refused: list[dict[str, Any]] = []
    answers: list[Any] = []
    own = []
    for each in getattr(request.body, several.asked):
        group_id = each if isinstance(each, str) else each.group_id
        if several.writes:  # each on its own: a claim is one group's
            work = partial(handler, service, _about(request, several, (each,)))
            done = await service.cluster.coordinating(group_id, work, is_kept=True)
            standing = done if isinstance(done, Standing) else Standing.COORDINATOR
            answers += () if isinstance(done, Standing) else _told(done, several)
        else:
            standing = service.cluster.standing(group_id)
            own += [each] if standing is Standing.COORDINATOR else []
        if standing is not Standing.COORDINATOR:
            refused.append({"group_id": group_id, "error_code": _ERRORS[standing], **several.entry})
    if own or not refused:
        answers += _told(await handler(service, _about(request, several, own)), several)
    return {several.told: [*answers, *refused]}


def _about(request: Request, several: _Several, groups: Iterable[Any]) -> Request:
    return replace(request, body=replace(request.body, **{several.asked: tuple(groups)}))


def _told(answer: Answer, several: _Several) -> Iterable[Any]:
    assert isinstance(answer, Mapping)
    found: Iterable[Any] = answer[several.told]
    return found


async def _listed(service: Service, request: Request, handler: Handler) -> Answer:
    """Each node lists its own groups; clients ask all nodes."""
    if not service.cluster.is_leased:
        return {"error_code": ErrorCode.coordinator_not_available, "groups": ()}
    found = await handler(service, request)
    assert isinstance(found, Mapping)
    own = [each for each in found["groups"] if service.cluster.standing(each["group_id"]) is Standing.COORDINATOR]
    return {**found, "groups": own}


def _refusal(request: Request, error: ErrorCode) -> Values:
    body = request.body
    if request.api_key == _OFFSET_COMMIT:
        return {"topics": [_with(each, ("partitions", {}), error) for each in body.topics]}
    may_be_null = request.version >= 7  # noqa: PLR2004 - before it, no protocol is an empty text
    named = {"member_id": getattr(body, "member_id", ""), "protocol_name": None if may_be_null else ""}
    return {**named, **_SINGLE[request.api_key], "error_code": error}


def _no_offsets(request: Request, error: ErrorCode) -> Values:
    topics = request.body.topics or ()
    none = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
    return {"error_code": error, "topics": [_with(each, ("partition_indexes", none), error) for each in topics]}


def _with(topic: Any, partitions: tuple[str, Values], error: ErrorCode) -> Values:
    """A topic of a request as its answer has it, with an error for each partition."""
    asked, entry = partitions
    numbers = [each if isinstance(each, int) else each.partition_index for each in getattr(topic, asked)]
    return {
        "name": getattr(topic, "name", None),
        "topic_id": getattr(topic, "topic_id", None),
        "partitions": [{"partition_index": each, "error_code": error, **entry} for each in numbers],
    }
