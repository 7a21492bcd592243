"""Fetch.

Batches in memory are sent at once, the next request gets those being decoded. A client beyond the end waits: another
node may have a newer snapshot, and OFFSET_OUT_OF_RANGE would skip or repeat records.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.access import Access
from archiver.errors import RecordsRetired
from archiver.serve.kafka import fetch_response
from archiver.serve.kafka.fetch_response import FetchedPartition
from archiver.serve.kafka.fetch_sessions import FINAL, FetchPosition, PartitionKey, SessionFetch
from archiver.serve.kafka.list_offsets import error_of
from archiver.serve.kafka.service import Request, Service
from archiver.serve.reading import CHUNK_BYTES, Chunk, ServedTopic
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_READ_COMMITTED: Final = 1
_DRY_PARTITIONS: Final = 100
"""Partitions of a request for each with records. What looking at more of them takes is in the client's budget."""
_PACKED_AT_ONCE: Final = 2000
"""Answers about more partitions are packed in a thread."""
_MOST_LOADS: Final = 4
"""How many chunks are decoded at a time for one request."""
_ENDING_SECONDS: Final = 0.1
"""A server that ends answers at once; clients that return until it is gone are slowed to this."""
_PATIENCE_SECONDS: Final = 10.0
"""How long a request with nothing to answer waits for batches that are being decoded."""
_MOST_WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 3.0
"""How long a client beyond the end waits for a look at the table. Its other partitions wait, too."""


@dataclass(slots=True)
class _Source:
    key: PartitionKey
    position: FetchPosition
    topic: ServedTopic | None
    error: ErrorCode = ErrorCode.none
    log_start: int = -1
    loaded: Chunk | None = None
    edition: int = -1
    """The edition of the topic that `loaded` is of."""
    is_dry: bool = False
    """Whether a load gave no records although there are more: the request waits for other partitions then."""

    @property
    def partition(self) -> int:
        return self.key[1]

    @property
    def end(self) -> int:
        return self.topic.end(self.partition) if self.topic else -1

    def may_have_records(self, offset: int) -> bool:
        return self.topic is not None and self.topic.may_have_records(self.partition, offset)

    @property
    def is_ahead(self) -> bool:
        return not self.error and self.position.offset > self.end


class _Looks:
    """All tables are looked at at the same time, each once."""

    def __init__(self) -> None:
        self._looks: dict[tuple[ServedTopic, bool], asyncio.Task[object]] = {}

    def begin(self, topic: ServedTopic, *, is_urgent: bool) -> None:
        """Without `is_urgent`, only if the last look is older than `refresh`."""
        if (topic, is_urgent) not in self._looks:
            look: Coroutine[Any, Any, object] = topic.caught_up() if is_urgent else topic.fresh()
            self._looks[topic, is_urgent] = asyncio.get_running_loop().create_task(look)

    async def done(self, request: Request) -> None:
        if self._looks:
            request.client.turns.end_long_work()
            await asyncio.wait(self._looks.values(), timeout=_LOOK_SECONDS)


@dataclass(slots=True)
class _Round:
    batches: dict[PartitionKey, tuple[memoryview, ...]] = field(default_factory=dict)
    following: list[tuple[_Source, int]] = field(default_factory=list)
    missing: list[tuple[_Source, int]] = field(default_factory=list)
    size: int = 0
    has_errors: bool = False
    editions: dict[ServedTopic, int] = field(default_factory=dict)
    """The edition of each topic when its first batches were taken."""

    def drop_removed(self) -> bool:
        """They may have left their table."""
        stale = {topic for topic, edition in self.editions.items() if topic.edition != edition}
        for source, _ in self.following if stale else ():
            if source.topic in stale:
                del self.batches[source.key]
        for topic in stale:
            del self.editions[topic]
        return bool(stale)

    @property
    def records(self) -> int:
        return sum(offset - source.position.offset for source, offset in self.following)

    @property
    def leaves_more(self) -> bool:
        """If no records are left out, a short answer doesn't show the client's pace."""
        return any(source.may_have_records(offset) for source, offset in (*self.missing, *self.following))


async def fetch(service: Service, request: Request) -> list[bytes | memoryview]:
    body = request.body
    by_id = request.version >= fetch_response.BY_ID
    pace, clock = request.client.pace, asyncio.get_running_loop().time
    soon = pace.takes_soon(clock())
    pauses = request.client.pauses
    if pauses is not None and (wait := pauses.delay(clock())):
        await asyncio.wait({service.ending}, timeout=wait)
    topics = _Topics(service, request.access)
    begun = request.client.sessions.begin(
        getattr(body, "session_id", 0),
        getattr(body, "session_epoch", FINAL),
        by_id=by_id,
        positions=OrderedDict(await request.listed(_positions(body))),
        forgotten=await request.listed(_forgotten(body)),
        is_kept=all([await topics.named(_named(topic)) async for topic in request.in_turns(body.topics)]),
    )
    if not isinstance(begun, SessionFetch):
        return fetch_response.packed(request.version, (), error=begun)
    sources = await _sources(service, request, begun, topics)
    gathered = await _gathered(service, request, sources, is_slow=None if soon is None else soon < CHUNK_BYTES)
    async for source in request.in_turns(sources):
        if source.is_ahead and source.topic is not None:
            source.topic.note_ahead(source.partition, source.position.offset)
            source.error = ErrorCode.offset_not_available
        if source.error:
            service.traffic.partition_error(source.error.name)
    for source, offset in gathered.following:
        assert source.topic is not None
        service.reader.read_ahead(source.topic, source.partition, offset, soon or 0)
    size, now = gathered.size if gathered.leaves_more else 0, clock()
    pace.note_answer(size, now)
    if pauses is not None:
        pauses.note_answer(size, gathered.records, now)
    if gathered.size:
        request.client.turns.spare_budget(min(1.0, _DRY_PARTITIONS * len(gathered.following) / len(sources)))

    return await _packed(request, begun, sources, gathered)


async def _packed(
    request: Request, begun: SessionFetch, sources: list[_Source], gathered: _Round
) -> list[bytes | memoryview]:
    """If batches were removed while the request waited for turns, the client fetches again."""
    included: list[_Source] | None = None

    def packed() -> list[bytes | memoryview]:
        nonlocal included
        if included is None:  # this notes what the client knows
            included = _included(begun, sources, gathered)
        return fetch_response.packed(
            request.version,
            _answered_partitions(included, gathered),
            session_id=begun.session_id,
            committed=request.body.isolation_level == _READ_COMMITTED,
        )

    while True:
        parts = packed() if len(sources) <= _PACKED_AT_ONCE else await request.client.turns.in_thread(packed)
        await _until_recent(request, gathered.editions)
        if not gathered.drop_removed():
            return parts


def _positions(body: Any) -> Iterator[tuple[PartitionKey, FetchPosition]]:
    for topic in body.topics:
        for partition in topic.partitions:
            yield (
                (_named(topic), partition.partition),
                FetchPosition(partition.fetch_offset, partition.partition_max_bytes),
            )


def _forgotten(body: Any) -> Iterator[PartitionKey]:
    for topic in getattr(body, "forgotten_topics_data", ()):
        for partition in topic.partitions:
            yield (_named(topic), partition)


def _named(topic: Any) -> str | UUID | None:
    if hasattr(topic, "topic_id"):
        return topic.topic_id or UUID(int=0)
    name: str = topic.topic
    return name


class _Topics:
    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access
        self._topics: dict[str | UUID | None, ServedTopic | None] = {}
        self._errors: dict[str | UUID | None, ErrorCode] = {}

    async def named(self, named: str | UUID | None) -> ServedTopic | None:
        if named not in self._topics:
            self._topics[named] = await self._look_up(named)
        return self._topics[named]

    def error(self, named: str | UUID | None) -> ErrorCode:
        return self._errors[named]

    async def _look_up(self, named: str | UUID | None) -> ServedTopic | None:
        service, may_read = self._service, self._access.reads
        if isinstance(named, str) and not may_read(named):  # before anybody looks whether there is one
            self._errors[named] = ErrorCode.topic_authorization_failed
            return None
        topic = await (service.topic(None, named) if isinstance(named, UUID) else service.topic(named))
        if topic is None:
            self._errors[named] = ErrorCode.unknown_topic_id
            if isinstance(named, str):  # Java's consumer ends on errors of fetches that it doesn't expect
                self._errors[named] = service.without(named, away=ErrorCode.kafka_storage_error)
        elif not may_read(topic.name):
            self._errors[named] = ErrorCode.topic_authorization_failed
            return None
        return topic


async def _sources(service: Service, request: Request, begun: SessionFetch, topics: _Topics) -> list[_Source]:
    sources: list[_Source] = []
    beyond: list[tuple[_Source, ServedTopic]] = []
    looks = _Looks()
    async for key, position in request.in_turns(begun.partitions.items()):
        topic = await topics.named(key[0])
        source = _Source(key, position, topic)
        sources.append(source)
        if topic is None:
            source.error = topics.error(key[0])
        elif _begins_look(service, source, topic, looks):
            beyond.append((source, topic))
        else:
            source.error = await _looked_up(service, source, topic)
    await looks.done(request)
    async for source, topic in request.in_turns(beyond):
        source.error = await _looked_up(service, source, topic)
    return sources


def _begins_look(service: Service, source: _Source, topic: ServedTopic, looks: _Looks) -> bool:
    partition, offset, may_lag = source.partition, source.position.offset, service.cluster.may_lag
    is_new = partition >= topic.partitions
    if is_new:
        may_be_behind = may_lag
    elif partition < 0 or offset <= topic.end(partition) or _is_moved(service, topic, partition):
        return False
    else:
        may_be_behind = may_lag and not topic.was_ahead(partition, offset)
    if may_be_behind or not is_new:
        looks.begin(topic, is_urgent=may_be_behind)
        return True
    return False


async def _looked_up(service: Service, source: _Source, topic: ServedTopic) -> ErrorCode:
    partition, offset = source.partition, source.position.offset
    if not 0 <= partition < topic.partitions:
        return ErrorCode.unknown_topic_or_partition
    if _is_moved(service, topic, partition):
        return ErrorCode.not_leader_or_follower
    try:
        source.log_start = await topic.start(partition)
    except ContextError as error:
        _log(source, error)
        return error_of(error)
    if offset >= source.log_start:
        return ErrorCode.none
    # A client whose offset is out of range may continue at the end: never answer that if the begin isn't known.
    may_be_there = topic.may_begin_before(partition, offset)
    return ErrorCode.kafka_storage_error if may_be_there else ErrorCode.offset_out_of_range


def _is_moved(service: Service, topic: ServedTopic, partition: int) -> bool:
    if service.cluster.settled_for <= service.redirects.leader:
        return False
    return service.cluster.members.leaders(topic.topic_id, partition)[0].node_id != service.cluster.own.node_id


async def _gathered(service: Service, request: Request, sources: list[_Source], *, is_slow: bool | None) -> _Round:
    loop = asyncio.get_running_loop()
    body = request.body
    budget = min(max(body.max_bytes, 0), service.most_response_bytes())
    began = loop.time()
    until = began + min(max(body.max_wait.total_seconds(), 0.0), _MOST_WAIT_SECONDS)
    topics = {source.topic for source in sources if source.topic is not None}
    while True:
        await _until_recent(request, topics)
        collected = await _collected(service, request, sources, budget)
        is_enough = collected.size >= min(body.min_bytes, budget) and (collected.size or not collected.missing)
        if is_enough or collected.has_errors:
            return collected
        request.client.turns.end_long_work()  # what waits for records holds up no other request of its principal
        is_being_decoded = bool(collected.missing) and not collected.size
        left = (max(until, began + _PATIENCE_SECONDS) if is_being_decoded else until) - loop.time()
        if left > 0 and service.ending.done():
            await asyncio.sleep(min(left, _ENDING_SECONDS))
            return collected
        if left <= 0:
            return collected
        if collected.size and any(_counts_as_slow(source, is_slow) for source, _ in collected.missing):
            return collected  # what is loaded for a slow reader isn't kept: with the next chunk this one would be gone
        loads = _loads(service, collected, budget, is_slow=is_slow)
        waits: set[asyncio.Future[Any]] = {*loads, *(() if loads else (topic.next_look() for topic in topics))}
        if not waits:
            await asyncio.wait({service.ending}, timeout=left)
            return collected
        done, _ = await asyncio.wait({*waits, service.ending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task in loads:
                _take_in(*loads[task], task)


async def _until_recent(request: Request, topics: Iterable[ServedTopic]) -> None:
    """Their records may have been removed."""
    if old := [topic for topic in topics if topic.is_old]:
        request.client.turns.end_long_work()
        await asyncio.gather(*(topic.recent() for topic in old))


async def _collected(service: Service, request: Request, sources: list[_Source], budget: int) -> _Round:
    collected = _Round()
    async for source in request.in_turns(sources):
        if source.error or source.topic is None:
            collected.has_errors |= bool(source.error)
            continue
        left = min(source.position.max_bytes, budget - collected.size)
        if left <= 0 and collected.size:
            continue
        piece = service.reader.take(
            source.topic,
            source.partition,
            source.position.offset,
            left,
            must_give=not collected.size,
            loaded=source.loaded if source.edition == source.topic.edition else None,
        )
        if piece.parts:
            collected.batches[source.key] = piece.parts
            collected.following.append((source, piece.next_offset))
            collected.size += piece.size
            collected.editions.setdefault(source.topic, source.topic.edition)
        if piece.is_missing and not source.is_dry:
            collected.missing.append((source, piece.next_offset))
    return collected


def _loads(
    service: Service, found: _Round, budget: int, *, is_slow: bool | None
) -> dict[asyncio.Future[Any], tuple[_Source, int]]:
    loads: dict[asyncio.Future[Any], tuple[_Source, int]] = {}
    for source, offset in found.missing[:_MOST_LOADS]:
        assert source.topic is not None
        takes = min(source.position.max_bytes, budget) if _counts_as_slow(source, is_slow) else None
        load = service.reader.load(source.topic, source.partition, offset, slow_takes=takes)
        loads[load] = source, source.topic.edition
    return loads


def _counts_as_slow(source: _Source, is_slow: bool | None) -> bool:
    return source.topic is not None and source.topic.is_crowded if is_slow is None else is_slow


def _take_in(source: _Source, edition: int, done: asyncio.Future[Any]) -> None:
    error = None if done.cancelled() else done.exception()
    if done.cancelled():
        source.error = ErrorCode.unknown_server_error
    elif error is None:
        source.loaded = done.result()
        source.edition = edition
        source.is_dry = source.loaded is None
    elif isinstance(error, ContextError):
        _log(source, error)
        is_retired = isinstance(error, RecordsRetired)  # after the beginning of the log was looked up
        source.error = ErrorCode.offset_out_of_range if is_retired else error_of(error)
    else:
        raise error


def _included(begun: SessionFetch, sources: list[_Source], gathered: _Round) -> list[_Source]:
    return [
        source
        for source in sources
        if begun.includes(
            source.key,
            (source.end, source.log_start),
            has_news=bool(source.key in gathered.batches or source.error),
        )
    ]


def _answered_partitions(included: list[_Source], gathered: _Round) -> fetch_response.Topics:
    topics: OrderedDict[str | UUID | None, list[FetchedPartition]] = OrderedDict()
    for source in included:
        topics.setdefault(source.key[0], []).append(
            FetchedPartition(
                partition=source.partition,
                error=source.error,
                high_watermark=source.end,
                log_start=source.log_start,
                parts=gathered.batches.get(source.key, ()),
            )
        )
    return list(topics.items())


def _log(source: _Source, error: ContextError) -> None:
    _LOG.warning("records of %s-%d can't be read", source.key[0], source.partition, exc_info=error)
