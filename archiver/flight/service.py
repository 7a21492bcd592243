"""The Flight calls DoPut, DoAction, ListActions and Handshake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import pyarrow as pa

from archiver.errors import AccessDenied, AuthenticationFailed, BadBatch, RowsRefused, UnknownTopic
from archiver.flight.batch_metadata import BatchMetadata, client_name
from archiver.flight.identity import CallIdentity, Identities
from archiver.flight.ipc import HeaderLimits, StreamDictionaries, kept_bytes, read_batch, read_schema
from archiver.flight.memory import MessageMemory
from archiver.flight.messages import (
    FlightData,
    action_result,
    action_type,
    handshake_response,
    parse_action,
    parse_flight_data,
    parse_path,
    put_result,
)
from archiver.flight.record_rows import intake_batch
from archiver.flight.shapes import SHAPES, BatchShape, RecordBytes, ShapeName, shape_of
from archiver.flight.statuses import status_of, trailers_of
from archiver.intake.batches import Acknowledgement, IntakeBatch
from archiver.intake.filled_topic import FilledTopic
from schema_mapping.errors import ContextError

_Answer: TypeAlias = asyncio.Future[Acknowledgement]
Context: TypeAlias = Any
"""A `grpc.aio.ServicerContext`, which is not typed."""
SERVICE: Final = "arrow.flight.protocol.FlightService"
DURABLE: Final = "disk"
_REQUEST_SECONDS: Final = 10.0
_REREAD_SECONDS: Final = 10.0
"""A client waits for at most this long until a changed schema is read."""
ACTIONS: Final = {
    "position": "the incarnation and the next batch id of a client: {topic, client}",
    "fence": "raise the incarnation of a client, so that older ones are refused: {topic, client}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightLimits:
    """`window` bounds a stream's unacknowledged batches."""

    message_bytes: int
    window: int


@dataclass(slots=True)
class _PutStream:
    topic: FilledTopic
    schema: pa.Schema
    name: ShapeName | None
    limits: HeaderLimits
    dictionaries: StreamDictionaries
    shape: BatchShape = field(default_factory=RecordBytes)


class FlightService:
    """For one event loop. `workers` validate batches."""

    def __init__(
        self,
        topics: Mapping[str, FilledTopic],
        identities: Identities,
        *,
        limits: FlightLimits,
        memory: MessageMemory,
        workers: Executor,
    ) -> None:
        self._topics = topics
        self._identities = identities
        self._limits = limits
        self._memory = memory
        self._workers = workers

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        """All take streams: else gRPC reads the message before the client is identified."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "DoPut": grpc.stream_stream_rpc_method_handler(self.do_put),
                "DoAction": grpc.stream_stream_rpc_method_handler(self.do_action),
                "ListActions": grpc.stream_stream_rpc_method_handler(self.list_actions),
                "Handshake": grpc.stream_stream_rpc_method_handler(self.handshake),
            },
        )

    async def do_put(self, messages: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """Answer each batch once it is durable, in order. The first error ends the stream."""
        sent: asyncio.Queue[_Answer | None] = asyncio.Queue(self._limits.window)
        reader = asyncio.create_task(self._read(messages, context, sent))
        try:
            while (pending := await sent.get()) is not None:
                answer = await asyncio.shield(pending)  # the log has the batch, whether or not the stream breaks
                yield put_result(json.dumps(answer.to_json() | {"durable": DURABLE}).encode())
            await reader
        except ContextError as error:
            await _abort(context, error)
        finally:
            reader.cancel()
            _empty(sent)  # the reader may wait for room in the queue
            await asyncio.gather(reader, return_exceptions=True)

    async def do_action(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        try:
            identity = await self._identify(context)
            action = parse_action(await _single(requests))
            if action.kind not in ACTIONS:
                raise BadBatch(f"there is no such action; there are {', '.join(ACTIONS)}")
            values = _object(action.body)
            topic, client = self._topic(values.get("topic"), identity), client_name(values.get("client"))
            act = topic.fence if action.kind == "fence" else topic.position
            answer = act(client, identity.owner)
            position = await asyncio.wrap_future(answer)
            yield action_result(json.dumps(position._asdict()).encode())
        except ContextError as error:
            await _abort(context, error)

    async def list_actions(self, _requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        try:
            await self._identify(context)
        except ContextError as error:
            await _abort(context, error)
        for kind, description in ACTIONS.items():
            yield action_type(kind, description)

    async def handshake(self, _messages: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        try:
            identity = await self._identify(context)
        except ContextError as error:
            await _abort(context, error)
        token = self._identities.token(identity)
        await context.send_initial_metadata((("authorization", f"Bearer {token}"),))
        yield handshake_response(token.encode())

    async def _read(
        self, messages: AsyncIterator[bytes], context: Context, sent: asyncio.Queue[_Answer | None]
    ) -> None:
        try:
            identity = await self._identify(context)
            stream: _PutStream | None = None
            async for message in messages:
                data = parse_flight_data(message)
                if stream is None:
                    stream = await self._begin(data, identity)
                    continue
                if stream.shape.takes_dictionaries and stream.dictionaries.has(data.header):
                    stream.dictionaries.add(data.header, data.body)
                    continue
                if identity.has_expired():
                    raise AuthenticationFailed("the credentials have expired since the call began")
                if not stream.shape.follows(stream.topic.encoding):
                    stream.shape = self._shape(stream)
                await sent.put(await self._send(data, stream, size=len(message), owner=identity.owner))
        finally:
            await sent.put(None)

    async def _begin(self, data: FlightData, identity: CallIdentity) -> _PutStream:
        path = parse_path(data.descriptor)
        topic = self._topic(path[0] if path else None, identity)
        name = next((shape for shape in SHAPES if path[1:] == (shape,)), None)
        if len(path) > 1 and name is None:
            raise BadBatch(f"the descriptor's path is the topic, and if needed {' or '.join(SHAPES)}")
        limits = HeaderLimits(columns=len(topic.encoding.row.column_ids))
        schema = read_schema(data.header, limits)
        stream = _PutStream(topic, schema, name, limits, StreamDictionaries(data.header, limits))
        try:
            stream.shape = self._shape(stream)
        except RowsRefused:  # the topic's schema may have changed
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(topic.reread()), _REREAD_SECONDS)
            stream.shape = self._shape(stream)
        return stream

    def _shape(self, stream: _PutStream) -> BatchShape:
        most_bytes = self._limits.message_bytes
        return shape_of(stream.schema, stream.topic.encoding, name=stream.name, most_bytes=most_bytes)

    async def _send(self, data: FlightData, stream: _PutStream, *, size: int, owner: str) -> _Answer:
        loop = asyncio.get_running_loop()
        kept = kept_bytes(data.header, data.body, most_bytes=self._limits.message_bytes, limits=stream.limits)
        size = max(size, kept)
        await self._memory.take(size)
        try:
            dictionaries = stream.dictionaries.messages
            batch = await loop.run_in_executor(self._workers, self._prepare, data, stream, stream.shape, dictionaries)
            if len(batch.body) > size:  # values need more bytes than columns
                await self._memory.take(len(batch.body) - size, held=size)
                size = len(batch.body)
            done = stream.topic.append(replace(batch, principal=owner))
        except BaseException:
            self._memory.give_back(size)
            raise
        # With its outcome, the log needs the rows no more, whether or not the client reads its answers.
        done.add_done_callback(lambda _: loop.call_soon_threadsafe(self._memory.give_back, size))
        answer = asyncio.wrap_future(done)
        answer.add_done_callback(_notice)
        return answer

    def _prepare(self, data: FlightData, stream: _PutStream, shape: BatchShape, dictionaries: bytes) -> IntakeBatch:
        partitions = stream.topic.partitions
        metadata = BatchMetadata.parse(data.metadata, partitions=partitions)
        try:
            batch = read_batch(
                data.header,
                data.body,
                stream.schema,
                most_bytes=self._limits.message_bytes,
                limits=stream.limits,
                dictionaries=dictionaries,
            )
            prepared = intake_batch(shape.records(batch), metadata, partitions=partitions)
            return replace(prepared, schema_version=shape.schema_version)
        except (BadBatch, pa.ArrowException) as error:
            refusal = error if isinstance(error, BadBatch) else BadBatch(f"the batch can't be taken: {error}")
            raise refusal.placed(client=metadata.client, batch_id=metadata.batch_id) from None

    def _topic(self, name: object, identity: CallIdentity) -> FilledTopic:
        if not isinstance(name, str):
            raise BadBatch("the descriptor must be a path that begins with the topic")
        if not identity.access.writes(name):
            raise AccessDenied(f"{identity.access.principal} may not write to the topic", topic=name)
        topic = self._topics.get(name)
        if topic is None:
            raise UnknownTopic('no section of the configuration has source = "flight" for the topic', topic=name)
        return topic

    async def _identify(self, context: Context) -> CallIdentity:
        headers = {str(key): value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        certificates = context.auth_context().get("x509_pem_cert", ())
        return await self._identities.identify(headers, certificates, _host(context.peer()))


def _empty(sent: asyncio.Queue[_Answer | None]) -> None:
    while not sent.empty():
        sent.get_nowait()


def _notice(answer: _Answer) -> None:
    """Keep asyncio from logging errors that a broken stream doesn't get."""
    if not answer.cancelled():
        answer.exception()


async def _single(requests: AsyncIterator[bytes]) -> bytes:
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            return await anext(requests)
    except (TimeoutError, StopAsyncIteration):
        raise BadBatch("the call has no message") from None


async def _abort(context: Context, error: ContextError) -> NoReturn:
    await context.abort(status_of(error), str(error), trailers_of(error))
    raise AssertionError("abort raises")


def _host(peer: str) -> str:
    return peer.partition(":")[2].rpartition(":")[0]


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadBatch("the action's body is not JSON") from None
    if not isinstance(value, dict):
        raise BadBatch("the action's body must be a JSON object")
    return value
