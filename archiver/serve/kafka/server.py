"""Listens for clients, within limits for all and per address."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Final, Protocol

from archiver.errors import BadRequest, ConfigError
from archiver.serve.kafka.client_reader import READ_BYTES, ClientProtocol, ClientReader
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.closing_log import ClosingLog
from archiver.serve.kafka.connection import Connection, ConnectionLimits, ConnectionResources
from archiver.serve.kafka.fetch_sessions import FetchSessions
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.newcomers import Newcomer, Newcomers
from archiver.serve.kafka.places import Places
from archiver.serve.kafka.request_memory import RequestMemory
from archiver.serve.kafka.service import Client, Service, payer_of
from archiver.serve.security import Session

_LOG = logging.getLogger(__name__)
_BACKLOG: Final = 1024
_UNSENT_BYTES: Final = 256 << 10
_REQUEST_MEMORY: Final = 64 << 20
_RESPONSE_MEMORY: Final = 256 << 20
_ACCEPTED_AT_ONCE: Final = 16
_SYSTEM_BYTES: Final = 64 << 10
_PAUSE_FOR_EACH: Final = 9.0
"""How long the server pauses for each second of accepting, if more clients wait: accepting takes a tenth at most."""
_CONNECTION_SECONDS: Final = 0.0001
_TLS_SECONDS: Final = 0.001
"""The approximate loop time of opening and closing a connection, and of a TLS handshake, which isn't measured."""
_LEAST_HANDSHAKE: Final = 0.01
_PAUSE_SECONDS: Final = 0.5
_SHUTDOWN_SECONDS: Final = 2.0


class Door(Protocol):
    @property
    def context(self) -> ssl.SSLContext | None: ...

    def session(self, certificate: bytes | None) -> Session: ...


class Server:
    """Use it within its event loop."""

    def __init__(
        self,
        limits: ConnectionLimits,
        *,
        most_connections: int,
        door: Door,
        most_per_address: int | None = None,
        request_memory: int = _REQUEST_MEMORY,
        response_memory: int = _RESPONSE_MEMORY,
        loop_share: float = 0.25,
    ) -> None:
        """`loop_share` is one client's part of the loop's time for requests without records."""
        self._most = most_connections
        self._places = Places(most_connections, most_per_address)
        self._door = door
        self._resources = ConnectionResources(
            limits=limits, memory=RequestMemory(request_memory), answers=RequestMemory(response_memory)
        )
        self._open: dict[asyncio.Task[None], Connection | None] = {}
        self.loop_time = LoopTime(share=loop_share)
        self._newcomers = Newcomers(self.loop_time, self._take, seconds=limits.handshake_seconds)
        self.closing_log = ClosingLog()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._listeners: list[socket.socket] = []
        self._is_accepting = False

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def fetch_sessions(self) -> int:
        return self._service.session_slots.sessions

    @property
    def request_bytes(self) -> int:
        """Of requests in memory."""
        return self._resources.memory.bytes

    async def listen(self, host: str, port: int) -> int:
        """Bind without accepting; return the port. Raises ConfigError."""
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, *_, address in dict.fromkeys(addresses):
                self._listeners.append(_listener(family, (str(address[0]), port)))
                port = self._listeners[-1].getsockname()[1]
        except OSError as error:
            self._stop_listening()
            raise _unusable(error, host, port) from error
        return port

    async def start(self, service: Service) -> None:
        """Raises ConfigError if another server took the port since `listen`."""
        self._service = service
        self._is_accepting = True
        for listener in self._listeners:
            try:
                listener.listen(_BACKLOG)
            except OSError as error:
                raise _unusable(error, *listener.getsockname()[:2]) from error
            self._accept_from(listener)

    async def end_in_order(self, seconds: float) -> None:
        """Answer waiting requests, leave the cluster and end connections, within `seconds`.

        Clients are accepted until other nodes know: some give up if no server listens.
        """
        self._end_connections()
        if not self._service.ending.done():
            self._service.ending.set_result(None)
        await self._service.cluster.close()
        self._stop_listening()
        self._newcomers.close()
        self._end_connections()
        if self._open:
            await asyncio.wait(self._open, timeout=seconds)

    async def close(self) -> None:
        self._stop_listening()
        self._newcomers.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self.loop_time.close()
        self._resources.departures.close()

    def _end_connections(self) -> None:
        for task, connection in self._open.items():
            if connection is None or not connection.end_after_answer():
                task.cancel()

    def _stop_listening(self) -> None:
        self._is_accepting = False
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._listeners.clear()

    def _accept_from(self, listener: socket.socket) -> None:
        if self._is_accepting:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        first = began = self.loop_time.clock()
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = listener.accept()
            except (BlockingIOError, InterruptedError):  # there is no other one, or it is gone already
                return
            except OSError as error:  # also too many open files
                _LOG.warning("a client can't be taken", exc_info=error)
                self._pause_accepting(listener, _PAUSE_SECONDS)
                return
            client.setblocking(False)  # noqa: FBT003 - its only way
            payer = payer_of(address[0])
            self._welcome(Newcomer(client, address[0], address[1], payer))
            now = self.loop_time.clock()
            self.loop_time.charge_payer(self.loop_time.payer(payer), now - began)
            began = now
        self._pause_accepting(listener, (began - first) * _PAUSE_FOR_EACH)

    def _pause_accepting(self, listener: socket.socket, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(seconds, self._accept_from, listener)

    def _welcome(self, newcomer: Newcomer) -> None:
        """Park a client of an address over its budget before anything is made for it."""
        if self.loop_time.is_over_budget(self.loop_time.payer(newcomer.payer)):
            displaced = self._newcomers.park(newcomer)
            if displaced is not None:
                self.closing_log.write(displaced.address, "its address is over its budget, and newer clients wait")
        else:
            self._take(newcomer)

    def _take(self, newcomer: Newcomer) -> None:
        client, payer = newcomer.client, newcomer.payer
        why = self._places.refusal(payer)
        if why is not None:
            self.closing_log.write(newcomer.address, why)
            client.close()
            return
        stranger = self._places.give_way(payer)
        if stranger is not None:
            stranger.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(client, newcomer.address, payer))
        self._open[task] = None
        self._places.take(task, payer)

        def gone(done: asyncio.Task[None]) -> None:
            self._open.pop(done, None)
            self._places.leave(done)
            if done.cancelled():  # before it began
                client.close()

        task.add_done_callback(gone)

    async def _serve(self, client: socket.socket, address: str, payer: str) -> None:
        turns = ClientTurns(self.loop_time, payer, long_wait=self._resources.limits.long_work_seconds)
        try:
            await turns.run(self._serve_client(client, address, turns))
        except asyncio.CancelledError:
            _LOG.debug("a connection was ended by the server")
        except Exception as error:  # noqa: BLE001 - one client's request must not end the server
            self.closing_log.write(address, "a request failed", error=error)

    async def _serve_client(self, client: socket.socket, address: str, turns: ClientTurns) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._resources.limits.handshake_seconds
        context = self._door.context
        reader = ClientReader()
        protocol = ClientProtocol(reader, self._buffer)
        try:
            try:
                async with asyncio.timeout_at(until):
                    if context is not None:  # what TLS needs is only made for clients that say something
                        await _readable(client)
                    await turns.begin()
            except BaseException:
                client.close()  # from here on, the transport does that
                raise
            turns.spend(_CONNECTION_SECONDS + (_TLS_SECONDS if context else 0.0))
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=context,
                ssl_handshake_timeout=max(_LEAST_HANDSHAKE, until - loop.time()) if context else None,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS if context else None,
            )
        except OSError as error:  # also errors and time-outs of TLS
            self.closing_log.write(address, f"its connection failed: {error or 'it sent nothing'}")
            return
        try:
            transport.set_write_buffer_limits(_UNSENT_BYTES)
            tls = transport.get_extra_info("ssl_object")
            connection = Connection(
                reader,
                asyncio.StreamWriter(transport, protocol, reader, loop),
                Client(
                    address=address,
                    login=self._door.session(tls.getpeercert(binary_form=True) if tls else None),
                    turns=turns,
                    sessions=FetchSessions(self._service.session_slots, turns.name),
                    closing_log=self.closing_log,
                ),
                service=self._service,
                resources=self._resources,
            )
        except BaseException:
            transport.abort()
            raise
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = connection

        def shown() -> None:
            why = self._places.show(task, None if turns.name == payer_of(connection.host) else turns.name)
            if why is not None:
                raise BadRequest(why)

        await connection.serve(handshake_until=until, shown=shown)


async def _readable(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.add_reader(client, _set, future)
    try:
        await future
    finally:
        loop.remove_reader(client)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _unusable(error: OSError, host: str, port: int) -> ConfigError:
    return ConfigError(
        f"the server can't listen on this address: {error.strerror or error}",
        key="serve.listen",
        address=f"{host}:{port}",
    )


def _listener(family: int, address: tuple[str, int]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)  # noqa: FBT003 - its only way
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SYSTEM_BYTES)  # connections have it too
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
