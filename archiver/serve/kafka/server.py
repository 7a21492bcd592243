"""Listens for clients, at most so many at a time, in all and from one address."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from typing import Final, Protocol

from archiver.errors import ConfigError
from archiver.serve.kafka.client_reader import ClientReader
from archiver.serve.kafka.connection import Connection, ConnectionLimits
from archiver.serve.kafka.request_memory import RequestMemory
from archiver.serve.kafka.service import Client, Service
from archiver.serve.security import Session

_LOG = logging.getLogger(__name__)
_BACKLOG: Final = 512
_UNSENT_BYTES: Final = 256 << 10
_REQUEST_MEMORY: Final = 64 << 20
_PAUSE_SECONDS: Final = 0.5
_SHUTDOWN_SECONDS: Final = 2.0


class Door(Protocol):
    """Knows who comes in."""

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context for a new connection; None where there is no TLS."""

    def session(self, certificate: bytes | None) -> Session:
        """The session of a new connection, whose client showed this certificate, if any."""


class Server:
    """A listening server. Use it within its event loop."""

    def __init__(
        self,
        limits: ConnectionLimits,
        *,
        most_connections: int,
        door: Door,
        most_per_address: int | None = None,
        request_memory: int = _REQUEST_MEMORY,
    ) -> None:
        self._limits = limits
        self._most = most_connections
        self._most_per_address = most_per_address
        self._door = door
        self._memory = RequestMemory(request_memory)
        self._open: dict[asyncio.Task[None], Connection | None] = {}
        self._addresses: Counter[str] = Counter()
        self._listeners: list[socket.socket] = []
        self._is_accepting = False
        self._is_full = False

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._open)

    async def listen(self, host: str, port: int) -> int:
        """Bind the address, without taking clients yet; return the port. ConfigError where that can't be done."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, *_, address in dict.fromkeys(found):
                self._listeners.append(_listener(family, (str(address[0]), port)))
                port = self._listeners[-1].getsockname()[1]
        except OSError as error:
            self._stop_listening()
            raise _unusable(error, host, port) from error
        return port

    async def start(self, service: Service) -> None:
        """Take clients. ConfigError where another server took the port since."""
        self._service = service
        self._is_accepting = True
        for each in self._listeners:
            try:
                each.listen(_BACKLOG)
            except OSError as error:
                raise _unusable(error, *each.getsockname()[:2]) from error
            self._accept_from(each)

    async def end_in_order(self, seconds: float) -> None:
        """Answer those that wait, leave the cluster, and end all connections, for so many seconds at most.

        Who waits for records gets those that there are, who commits hears that it is done, and who waits in a group is
        sent to another node. Clients are taken until the other nodes know that this one leaves: until then they send
        clients here, and some give up where nobody listens.
        """
        self._end_connections()
        if not self._service.ending.done():
            self._service.ending.set_result(None)
        await self._service.cluster.close()
        self._stop_listening()
        self._end_connections()
        if self._open:
            await asyncio.wait(self._open, timeout=seconds)

    async def close(self) -> None:
        """End all connections."""
        self._stop_listening()
        for each in self._open:
            each.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _end_connections(self) -> None:
        for task, connection in self._open.items():
            if connection is None or not connection.end_after_answer():
                task.cancel()

    def _stop_listening(self) -> None:
        self._is_accepting = False
        for each in self._listeners:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        self._listeners.clear()

    def _accept_from(self, listener: socket.socket) -> None:
        if self._is_accepting:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except (BlockingIOError, InterruptedError):  # the client is gone already
            return
        except OSError as error:  # also too many open files
            _LOG.warning("a client can't be taken", exc_info=error)
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(_PAUSE_SECONDS, self._accept_from, listener)
            return
        client.setblocking(False)  # noqa: FBT003 - its only way
        self._take(client, address[0], address[1])

    def _take(self, client: socket.socket, host: str, port: int) -> None:
        """Begin to serve a client, if there is room for one more. It is counted before it says a word."""
        if not self._has_room(host):
            client.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(client, f"{host}:{port}"))
        self._open[task] = None
        self._addresses[host] += 1

        def gone(done: asyncio.Task[None]) -> None:
            self._open.pop(done, None)
            self._addresses[host] -= 1
            if not self._addresses[host]:
                del self._addresses[host]
            if done.cancelled():  # before it began
                client.close()

        task.add_done_callback(gone)

    def _has_room(self, host: str) -> bool:
        if len(self._open) >= self._most:
            if not self._is_full:
                _LOG.warning("%d clients are connected: no more are taken (max_connections)", self._most)
            self._is_full = True
            return False
        self._is_full = False
        most = self._most_per_address
        if most is not None and self._addresses[host] >= most:
            _LOG.debug("%s has %d connections: no more are taken (max_connections_per_address)", host, most)
            return False
        return True

    async def _serve(self, client: socket.socket, address: str) -> None:
        try:
            await self._serve_client(client, address)
        except asyncio.CancelledError:
            _LOG.debug("a connection was ended by the server")
        except Exception:  # noqa: BLE001 - one client's request must not end the server
            _LOG.exception("a request failed; its connection is closed")

    async def _serve_client(self, client: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.handshake_seconds
        context = self._door.context
        reader = ClientReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=context,
                ssl_handshake_timeout=self._limits.handshake_seconds if context else None,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS if context else None,
            )
        except OSError as error:  # also those of TLS, and its time-out
            _LOG.warning("%s isn't let in: %s", address, error)
            return
        try:
            transport.set_write_buffer_limits(_UNSENT_BYTES)
            shown = transport.get_extra_info("ssl_object")
            connection = Connection(
                reader,
                asyncio.StreamWriter(transport, protocol, reader, loop),
                Client(
                    address=address,
                    login=self._door.session(shown.getpeercert(binary_form=True) if shown else None),
                ),
                service=self._service,
                limits=self._limits,
                memory=self._memory,
            )
        except BaseException:
            transport.abort()
            raise
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = connection
        await connection.serve(handshake_until=until)


def _unusable(error: OSError, host: str, port: int) -> ConfigError:
    return ConfigError(
        f"the address can't be listened on: {error.strerror or error}", key="serve.listen", address=f"{host}:{port}"
    )


def _listener(family: int, address: tuple[str, int]) -> socket.socket:
    """A bound socket that doesn't listen yet."""
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setblocking(False)  # noqa: FBT003 - its only way
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind(address)
    except OSError:
        found.close()
        raise
    return found
