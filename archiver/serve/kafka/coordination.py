"""Routes requests about groups.

For groups of other nodes, the error makes clients look for their coordinator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kio.schema.errors import ErrorCode

from archiver.serve.groups import JOINING_EPOCH, is_group_id
from archiver.serve.kafka.api import Api
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.offset_requests import commit_in_time
from archiver.serve.kafka.refused_offsets import late, no_offsets, no_offsets_here, refused_here
from archiver.serve.kafka.service import Request, Service
from archiver.serve.nodes import GroupDuty, GroupStanding, Need
from archiver.wire.api_keys import ApiKey

Answer: TypeAlias = Values | list[bytes | memoryview]

_WITH_IDS_FIRST: Final = 4
"""From this version on, JoinGroup gives a member its id first."""
_GROUPS_FROM: Final = 8
"""From this version on, OffsetFetch names several groups."""
_MOST_ELEMENTS: Final = 250_000
"""The most partitions or members of one answer about groups, beside those of its last group."""
_ELEMENT_BYTES: Final = 64
"""Metadata of offsets counts as an element for each of these."""
_ERRORS: Final[Mapping[GroupStanding, ErrorCode]] = {
    GroupStanding.OTHER: ErrorCode.not_coordinator,
    GroupStanding.LOADING: ErrorCode.coordinator_load_in_progress,
    GroupStanding.UNKNOWN: ErrorCode.coordinator_not_available,
    GroupStanding.UNUSED: ErrorCode.group_id_not_found,
    GroupStanding.OVER_BUDGET: ErrorCode.group_max_size_reached,
}
_OVER_BUDGET: Final = "the principal has begun as many groups as it may: stop members of groups that it doesn't need"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Several:
    asked: str
    answered: str
    entry: Values
    claims: bool = False


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
    ApiKey.OFFSET_FETCH: _Several(asked="groups", answered="groups", entry={"topics": ()}, claims=True),
    ApiKey.DESCRIBE_GROUPS: _Several(asked="groups", answered="groups", entry=_NOBODY),
    ApiKey.DELETE_GROUPS: _Several(asked="groups_names", answered="results", entry={}, claims=True),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _Several(asked="group_ids", answered="groups", entry=_NOBODY),
}
_NOT_JOINED: Final = {
    "generation_id": -1,
    "protocol_type": None,
    "leader": "",
    "skip_assignment": False,
    "members": (),
}
_SINGLE: Final[Mapping[int, Values]] = {
    ApiKey.JOIN_GROUP: _NOT_JOINED,
    ApiKey.HEARTBEAT: {},
    ApiKey.LEAVE_GROUP: {"members": ()},
    ApiKey.SYNC_GROUP: {"protocol_type": None, "protocol_name": None, "assignment": b""},
    ApiKey.OFFSET_DELETE: {"topics": ()},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        "error_message": None,
        "member_id": None,
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "assignment": None,
    },
}
"""Requests about one group, and what their answers need beside the error."""


async def coordinated(api: Api, service: Service, request: Request) -> Answer:
    with _asking(api, service, request):
        return await _routed(api, service, request)


def _asking(api: Api, service: Service, request: Request) -> AbstractContextManager[object]:
    group_id, member_id = getattr(request.body, "group_id", ""), getattr(request.body, "member_id", "")
    if not api.is_slow:
        group = service.coordinator.groups.get(group_id)
        if group is not None and member_id in group.members:
            request.client.member = group_id, member_id
        return nullcontext()
    groups = service.coordinator.groups
    asked = getattr(request.body, "groups", (request.body,))
    named = [group for group in asked if getattr(group, "member_id", None)]
    asking = ExitStack()
    for group in named:
        if group.group_id in groups:
            asking.enter_context(service.coordinator.asking(group.group_id, *_as_member(group)))
    if not named and request.client.member is not None:
        asking.enter_context(service.coordinator.asking(*request.client.member))
    return asking


def _as_member(asked: Any) -> tuple[str, str | None, int]:
    generation = getattr(asked, "generation_id_or_member_epoch", getattr(asked, "member_epoch", -1))
    return asked.member_id, getattr(asked, "group_instance_id", None), generation


async def _routed(api: Api, service: Service, request: Request) -> Answer:
    key = api.key
    if key is ApiKey.LIST_GROUPS:
        return await _listed(service, request, api)
    if key in _SEVERAL and (key != ApiKey.OFFSET_FETCH or request.version >= _GROUPS_FROM):
        return await _of_several(service, request, api, _SEVERAL[key])
    if key in _SINGLE or key in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
        answer = await by_coordinator(service, request, api, request.body.group_id)
        return await _refusal(service, request, answer) if isinstance(answer, ErrorCode) else answer
    return await api.handler(service, request)


async def by_coordinator(service: Service, request: Request, api: Api, group_id: str) -> Answer | ErrorCode:
    if not is_group_id(group_id):
        return ErrorCode.invalid_group_id
    if request.api_key == ApiKey.OFFSET_COMMIT:
        await commit_in_time(service, request)

    def work(duty: GroupDuty) -> Awaitable[Answer]:  # in a separate task, whose time counts as the client's
        return request.client.turns.run(_handled(api, service, replace(request, duty=duty)))

    budget = service.budget(request)
    answer = await service.cluster.coordinating(
        group_id,
        work,
        is_kept=api.is_kept,
        joins=request.api_key == ApiKey.OFFSET_COMMIT,
        need=_need(api, service, request),
        budget=budget,
    )
    if answer is GroupStanding.OVER_BUDGET:
        service.budgets.reached(budget.owner, "groups")
    if answer is GroupStanding.UNUSED and not api.ends_groups:
        answer = await api.handler(
            service, request
        )  # nothing is known of the group: the answer says so, and leaves no trace of it
        standing = service.cluster.standing(group_id)
        return answer if standing is GroupStanding.COORDINATOR else _ERRORS[standing]
    return _ERRORS[answer] if isinstance(answer, GroupStanding) else answer


async def _handled(api: Api, service: Service, request: Request) -> Answer:
    return await api.handler(service, request)


def _need(api: Api, service: Service, request: Request) -> Need:
    key, body = api.key, request.body
    if api.of_offsets:
        return Need.OFFSETS
    if key == ApiKey.JOIN_GROUP:  # a request for an id, or with an id that the group didn't give, begins no group
        is_given = bool(body.member_id) and service.coordinator.may_join(body.group_id, body.member_id)
        begins = request.version < _WITH_IDS_FIRST or getattr(body, "group_instance_id", None) is not None
        return Need.GROUP if is_given or (begins and not body.member_id) else Need.MEMBERS
    is_member = (
        api.of_members
        or (key == ApiKey.CONSUMER_GROUP_HEARTBEAT and body.member_epoch != JOINING_EPOCH)
        or (key == ApiKey.OFFSET_COMMIT and getattr(body, "generation_id_or_member_epoch", -1) >= 0)
    )
    return Need.MEMBERS if is_member else Need.GROUP


async def _of_several(service: Service, request: Request, api: Api, several: _Several) -> Answer:
    refused: list[Values] = []
    answers: list[Any] = []
    own = []
    waits = 0.0
    size = 0
    async for group in request.in_turns(getattr(request.body, several.asked)):
        group_id = group if isinstance(group, str) else group.group_id
        error = ErrorCode.none
        if size > _MOST_ELEMENTS:
            error = ErrorCode.coordinator_load_in_progress  # clients repeat the request for these groups only
        elif several.claims:  # each on its own: a claim is one group's
            about = _about(request, several, (group,))
            done = await by_coordinator(service, about, api, group_id)
            if isinstance(done, ErrorCode):
                error = done
            else:
                about_group = _told(done, several)
                answers += about_group
                size += sum(
                    1 + len(partition["metadata"]) // _ELEMENT_BYTES
                    for answered in about_group
                    for topic in answered.get("topics", ())
                    for partition in topic["partitions"]
                )
        else:
            standing = service.cluster.standing(group_id)
            if standing is GroupStanding.COORDINATOR:
                own.append(group)
                coordinated = service.coordinator.groups.get(group_id)
                size += 0 if coordinated is None else len(coordinated.members)
            else:
                error = _ERRORS[standing]
        if error is not ErrorCode.none and request.api_key == ApiKey.OFFSET_FETCH:
            error, seconds = refused_here(service, request.version, error)
            refused.append(await no_offsets(request, group, error))
            waits = max(waits, seconds)
        elif error is not ErrorCode.none:
            refused.append({"group_id": group_id, "error_code": error, **several.entry})
    if own or not (refused or answers):
        answers += _told(await api.handler(service, _about(request, several, own)), several)
    if waits:
        request.client.turns.end_long_work()
    await late(waits, service.ending)  # once for all groups
    return {several.answered: [*answers, *refused]}


def _about(request: Request, several: _Several, groups: Iterable[Any]) -> Request:
    return replace(request, body=replace(request.body, **{several.asked: tuple(groups)}))


def _told(answer: Answer, several: _Several) -> Sequence[Any]:
    assert isinstance(answer, Mapping)
    groups: Sequence[Any] = answer[several.answered]
    return groups


async def _listed(service: Service, request: Request, api: Api) -> Answer:
    if not service.cluster.is_leased:
        return {"error_code": ErrorCode.coordinator_not_available, "groups": ()}
    listed = await api.handler(service, request)
    assert isinstance(listed, Mapping)
    own = [
        group for group in listed["groups"] if service.cluster.standing(group["group_id"]) is GroupStanding.COORDINATOR
    ]
    return {**listed, "groups": own}


async def _refusal(service: Service, request: Request, error: ErrorCode) -> Values:
    body = request.body
    if request.api_key == ApiKey.OFFSET_FETCH:
        return await no_offsets_here(service, request, body, error)
    is_over = error is ErrorCode.group_max_size_reached
    if request.api_key == ApiKey.OFFSET_COMMIT:
        error = ErrorCode.invalid_commit_offset_size if is_over else error
        return {"topics": [await _with(request, topic, error) async for topic in request.in_turns(body.topics)]}
    may_be_null = request.version >= 7  # noqa: PLR2004 - before it, no protocol is an empty text
    named = {"member_id": getattr(body, "member_id", ""), "protocol_name": None if may_be_null else ""}
    text = {"error_message": _OVER_BUDGET} if is_over and request.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT else {}
    return {**named, **_SINGLE[request.api_key], **text, "error_code": error}


async def _with(request: Request, topic: Any, error: ErrorCode) -> Values:
    return {
        "name": getattr(topic, "name", None),
        "topic_id": getattr(topic, "topic_id", None),
        "partitions": await request.listed(
            {"partition_index": partition.partition_index, "error_code": error} for partition in topic.partitions
        ),
    }
