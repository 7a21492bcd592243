"""Listens for clients, at most so many at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from archiver.errors import ConfigError
from archiver.serve.kafka.connection import Connection, ConnectionLimits
from archiver.serve.kafka.service import Service

_LOG = logging.getLogger(__name__)
_BACKLOG: Final = 512
_UNSENT_BYTES: Final = 256 << 10


class Server:
    """A listening server. Use it within its event loop."""

    def __init__(self, limits: ConnectionLimits, *, most_connections: int) -> None:
        self._limits = limits
        self._most = most_connections
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_full = False

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._open)

    async def listen(self, host: str, port: int) -> int:
        """Bind the address, without taking clients yet; return the port. ConfigError where that can't be done."""
        try:
            self._server = await asyncio.start_server(self._accepted, host, port, backlog=_BACKLOG, start_serving=False)
        except OSError as error:
            raise ConfigError(
                f"the address can't be listened on: {error.strerror}", key="serve.listen", address=f"{host}:{port}"
            ) from error
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def start(self, service: Service) -> None:
        """Take clients."""
        assert self._server is not None
        self._service = service
        await self._server.start_serving()

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for each in self._open:
            each.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._most:
            if not self._is_full:
                _LOG.warning("%d clients are connected: no more are taken (max_connections)", self._most)
            self._is_full = True
            writer.transport.abort()
            return
        self._is_full = False
        writer.transport.set_write_buffer_limits(_UNSENT_BYTES)
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await Connection(reader, writer, self._service, self._limits).serve()
        except asyncio.CancelledError:
            _LOG.debug("a connection was ended by the server")
        except Exception:  # noqa: BLE001 - one client's request must not end the server
            _LOG.exception("a request failed; its connection is closed")
        finally:
            self._open.discard(task)
