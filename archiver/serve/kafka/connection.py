"""One client's connection. Requests are answered in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from archiver.access import ANONYMOUS
from archiver.errors import BadRequest
from archiver.serve.kafka.api import Api
from archiver.serve.kafka.apis import BEFORE_AUTHENTICATION, api_of, fallback, load, respond
from archiver.serve.kafka.authentication import raw_step
from archiver.serve.kafka.client_reader import ClientReader
from archiver.serve.kafka.departures import Departures
from archiver.serve.kafka.distinct import without_repeats
from archiver.serve.kafka.frames import LEAST_BYTES, RequestHead, head_of, read_rest, read_size, request_of, write_frame
from archiver.serve.kafka.request_memory import SMALL, HeldMemory, RequestMemory
from archiver.serve.kafka.service import Client, Request, Service
from archiver.wire.api_keys import ApiKey

_LOG = logging.getLogger(__name__)
_FLUSH_SECONDS: Final = 2.0
"""How long the last answer may take to be sent when the server ends."""
_READ_AT_ONCE: Final = 8 << 10
"""Longer requests, which may have many elements, are decoded in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of a client. `frame_seconds` applies to 64 KiB of a request or 256 KiB of an answer.

    A request must arrive at 128 KiB a second. Answers that take memory must be taken at `answer_bytes_per_second`;
    other answers wait for room for `answer_seconds`. `handshake_seconds` bounds the time before authentication,
    `half_closed_seconds` the work for a client that closed its half.
    """

    most_request_bytes: int
    idle_seconds: float
    frame_seconds: float = 10.0
    answer_seconds: float = 120.0
    answer_bytes_per_second: int = 128 << 10
    most_unauthenticated_bytes: int = 64 << 10
    most_unauthenticated_requests: int = 20
    handshake_seconds: float = 10.0
    half_closed_seconds: float = 5.0
    long_work_seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionResources:
    """`loaded`: the APIs and versions whose messages were read before."""

    limits: ConnectionLimits
    memory: RequestMemory
    answers: RequestMemory
    departures: Departures = field(default_factory=Departures)
    loaded: set[tuple[int, int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _KnownRequest:
    api: Api
    head: RequestHead
    request: Request


_Frame: TypeAlias = bytes | RequestHead | _KnownRequest
"""A message of SASL without a header, the head of a request that isn't known, or a request."""


class Connection:
    """A malformed frame closes only this connection."""

    def __init__(
        self,
        reader: ClientReader,
        writer: asyncio.StreamWriter,
        client: Client,
        *,
        service: Service,
        resources: ConnectionResources,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client = client
        self._service = service
        self._limits = resources.limits
        self._memory = resources.memory
        self._answers = resources.answers
        self._departures = resources.departures
        self._loaded = resources.loaded
        self._turns = client.turns
        self._shown: Callable[[], None] = _do_nothing
        self._is_shown = False
        self._late = "it didn't authenticate in time"
        self._is_writing = False
        self._is_answering = False
        self._is_kept = False
        self._is_ending = False
        self._has_client_ended = False

    @property
    def host(self) -> str:
        return self._client.host

    def end_after_answer(self) -> bool:
        """End after the current answer. False if the connection can be closed at once.

        During an answer of many turns, only commits and deletions are waited for.
        """
        was_ending, self._is_ending = self._is_ending, True
        if self._turns.is_long_work and not (self._is_writing or self._is_kept):
            return False
        return was_ending or self._is_answering

    async def serve(self, *, handshake_until: float, shown: Callable[[], None]) -> None:
        """Answer until the client disconnects, idles too long or sends a malformed request.

        A client not authenticated at `handshake_until` (loop's clock) is closed. `shown` is called after authentication
        or, without it, at the first request.
        """
        login, log = self._client.login, self._client.closing_log
        self._shown = shown
        serving = asyncio.current_task()
        assert serving is not None
        self._reader.on_end = ended = partial(self._client_ended, serving)
        socket = self._writer.get_extra_info("socket").fileno()
        self._departures.watch(socket, ended)
        try:
            async with asyncio.timeout_at(handshake_until) if login.access is None else nullcontext():
                await self._log_in()
            if login.access is None:
                return
            if login.access.principal != ANONYMOUS:
                self._turns.pay_as(self._client.payer)
                self._client.sessions.payer = self._turns.name
                self._note_shown()
            while await self._next():
                pass
        except BadRequest as error:
            log.write(self._client.address, error)
        except TimeoutError as error:
            log.write(self._client.address, str(error) or self._late)
        except ConnectionError:
            _LOG.debug("connection of %s ended", self._client.address)
        finally:
            self._departures.forget(socket, ended)
            await self._end()

    async def _log_in(self) -> None:
        login, most = self._client.login, self._limits.most_unauthenticated_requests
        for _ in range(most):
            if login.access is not None or not await self._next():
                return
        if login.access is None:
            raise BadRequest("the client sent too many requests before authentication", most=most)

    def _client_ended(self, serving: asyncio.Task[None], is_broken: bool) -> None:
        if is_broken:
            serving.cancel()
        elif not self._has_client_ended:
            self._has_client_ended = True
            asyncio.get_running_loop().call_later(self._limits.half_closed_seconds, serving.cancel)

    async def _next(self) -> bool:
        with self._memory.hold(self._turns.name) as reserved:
            frame = await self._frame(reserved)
            if frame is None:
                return False
            self._is_answering = True
            waits = isinstance(frame, _KnownRequest) and frame.api.waits
            self._is_kept = isinstance(frame, _KnownRequest) and frame.api.is_kept
            if not waits:
                parts, wait = await self._answer(frame)
        if waits:
            parts, wait = await self._answer(frame)
        await self._write(parts)
        if self._is_ending:
            return False
        if wait:  # what the client sends during that stays in its memory
            await asyncio.sleep(wait)
        return not self._client.login.is_over

    async def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Write an answer when there is room. Raises TimeoutError."""
        seconds = self._limits.answer_seconds
        late, self._late = self._late, "there was no memory for its response in time (response_memory)"
        self._turns.end_long_work()
        with self._answers.hold(self._turns.name) as room:
            size = sum(len(part) for part in parts if isinstance(part, bytes))  # other parts are in the cache
            if size > SMALL:
                async with asyncio.timeout(seconds):
                    await room.grow(size)
            self._is_writing, self._late = True, "it doesn't read its responses"
            in_all = seconds + sum(map(len, parts)) / self._limits.answer_bytes_per_second
            async with asyncio.timeout(in_all if size > SMALL else None):
                await write_frame(self._writer, parts, slice_seconds=seconds)
            self._is_writing = self._is_answering = False
        self._late = late

    async def _frame(self, held: HeldMemory) -> _Frame | None:
        login, limits = self._client.login, self._limits
        most = limits.most_request_bytes
        if login.access is None:
            most = min(most, limits.most_unauthenticated_bytes)
        least = 0 if login.is_raw else LEAST_BYTES
        self._turns.reads()
        size = await read_size(self._reader, least, most, idle_seconds=limits.idle_seconds)
        if size is None:
            return None
        frame = await read_rest(self._reader, size, part_seconds=limits.frame_seconds, grow=held.grow)
        if login.is_raw:
            await self._turns.begin()
            return frame
        return await self._read(frame)

    async def _read(self, frame: bytes) -> _Frame:
        head = head_of(frame)
        login = self._client.login
        if head.api_key not in BEFORE_AUTHENTICATION:
            if login.access is None:
                raise BadRequest("the client hasn't authenticated", api_key=head.api_key)
            if login.has_expired:
                raise BadRequest("the client hasn't authenticated again before its session ended", api_key=head.api_key)
        api = api_of(head)
        if api is None:
            await self._turns.begin()
            return head
        if login.access is not None:
            self._note_shown()
        if len(frame) <= _READ_AT_ONCE and (api.of_readers or (api.key, head.version) in self._loaded):
            await self._turns.begin()
            return _KnownRequest(api, head, self._decoded(api, head, frame))
        request = await self._turns.decode(len(frame), partial(self._decoded, api, head, frame))
        self._loaded.add((api.key, head.version))
        if api.waits and api.key is not ApiKey.FETCH:  # Fetch reports when it waits
            self._turns.end_long_work()
        await self._turns.begin(len(frame))
        return _KnownRequest(api, head, request)

    def _decoded(self, api: Api, head: RequestHead, frame: bytes) -> Request:
        load(api, head.version)
        return without_repeats(request_of(head, frame, self._client))

    def _note_shown(self) -> None:
        if not self._is_shown:
            self._is_shown = True
            self._shown()

    async def _answer(self, frame: _Frame) -> tuple[Sequence[bytes | memoryview], float]:
        match frame:
            case bytes():
                return [await raw_step(self._service, self._client, frame)], 0.0
            case _KnownRequest():
                return await respond(self._service, frame.api, frame.head, frame.request)
            case RequestHead() as head:
                parts = fallback(head)
                if parts is None:
                    raise BadRequest(
                        "the client requests an API or a version that this server doesn't have",
                        api_key=head.api_key,
                        version=head.version,
                    )
                return parts, 0.0

    async def _end(self) -> None:
        self._turns.end()
        self._client.sessions.close()
        self._reader.on_end = self._shown = _do_nothing  # else requests live until the next collection
        if self._is_ending and not (self._is_answering or self._is_writing):
            self._writer.close()
            try:
                with suppress(ConnectionError, TimeoutError):
                    async with asyncio.timeout(_FLUSH_SECONDS):
                        await self._writer.wait_closed()
            finally:
                self._writer.transport.abort()
        elif self._client.login.is_over:
            self._writer.close()
        else:
            self._writer.transport.abort()


def _do_nothing(*_: object) -> None: ...
