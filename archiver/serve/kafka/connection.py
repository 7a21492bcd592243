"""One client's connection: its requests, answered one after the other as a broker answers them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from archiver.errors import BadRequest
from archiver.serve.kafka.apis import answered, api_of, fallback
from archiver.serve.kafka.frames import head_of, read_frame, request_of, write_frame
from archiver.serve.kafka.service import Client, Service

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What a client may do: the bytes of a request, and the seconds that it may be idle, send a frame, or take one."""

    most_request_bytes: int
    idle_seconds: float
    frame_seconds: float = 60.0
    answer_seconds: float = 120.0


class Connection:
    """A client's connection. A frame that is no request closes it, and no other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, limits: ConnectionLimits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._service = service
        self._limits = limits
        peer = writer.get_extra_info("peername")
        self._client = Client(address=f"{peer[0]}:{peer[1]}" if peer else "?")

    async def serve(self) -> None:
        """Answer requests until the client ends the connection, is idle for too long, or sends what is no request."""
        try:
            while (frame := await self._frame()) is not None:
                await self._answer(frame)
        except BadRequest as error:
            _LOG.warning("connection of %s closed", self._client.address, exc_info=error)
        except TimeoutError:
            _LOG.warning("connection of %s closed: it takes no answers", self._client.address)
        except ConnectionError:
            _LOG.debug("connection of %s ended", self._client.address)
        finally:
            self._writer.transport.abort()

    async def _frame(self) -> bytes | None:
        return await read_frame(
            self._reader,
            self._limits.most_request_bytes,
            idle_seconds=self._limits.idle_seconds,
            frame_seconds=self._limits.frame_seconds,
        )

    async def _answer(self, frame: bytes) -> None:
        head = head_of(frame)
        api = api_of(head)
        if api is None:
            parts = fallback(head)
            if parts is None:
                raise BadRequest(
                    "the client asks for an API or a version that isn't known here",
                    api_key=head.api_key,
                    version=head.version,
                )
        else:
            parts = await answered(self._service, api, head, request_of(head, frame, self._client))
        async with asyncio.timeout(self._limits.answer_seconds):
            await write_frame(self._writer, parts)
