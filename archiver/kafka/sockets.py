"""Sockets to brokers that mend three faults of kafka-python 3.0: lost last bytes, small reads, and open sockets.

kafka-python drops bytes that arrive together with the end of a connection, such as a broker's refusal of wrong
credentials before it hangs up. It reads 4 KiB at a time. It leaves the sockets of failed attempts to the garbage
collector. We change this by its registry of connection schemes, and by the socket class of a TLS context.
"""

from __future__ import annotations

from socket import socket as Socket  # noqa: N812 - the base class has a method of that name
from ssl import SSLSocket, SSLWantReadError, SSLWantWriteError
from typing import Any, Final

from kafka.net.inet import KafkaNetSocket

SCHEME: Final = "direct"
_STEP: Final = 128 << 10


class _Pausing:
    """Raises one `BlockingIOError` between the last bytes and the end, so that the reader handles the bytes first.

    Reads `_STEP` bytes where kafka-python asks for 4 KiB and joins the parts: 1.4 times as fast (measured).
    """

    _bytes_came = False

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        """Receive up to `size` bytes or `_STEP`, whichever is more."""
        data: bytes = super().recv(max(size, _STEP), flags)  # type: ignore[misc]
        if data:
            self._bytes_came = True
        elif self._bytes_came:
            self._bytes_came = False
            raise BlockingIOError
        return data


class PlainSocket(_Pausing, Socket):
    """A TCP socket."""


class TlsSocket(_Pausing, SSLSocket):
    """A TLS socket. TLS contexts make it."""

    def do_handshake(self, block: bool = False) -> None:
        """Shake hands, and close the socket if that fails."""
        try:
            super().do_handshake(block)
        except (SSLWantReadError, SSLWantWriteError):
            raise
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        """Close the socket of an attempt that was given up in the middle of the handshake: nobody else closes it."""
        self.close()


class DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """Connects without a proxy. The proxy url `direct://` selects it."""

    SCHEMES = (SCHEME,)

    def __init__(self, proxy_url: str | None = None) -> None:
        super().__init__(proxy_url)
        self._made: PlainSocket | None = None

    def socket(self, family: int, kind: int, protocol: int) -> PlainSocket:
        """Make a socket. It isn't connected yet."""
        self._made = PlainSocket(family, kind, protocol)
        return self._made

    async def connect(self, *where: Any, **options: Any) -> Any:
        """Connect a socket, and close it if that fails."""
        try:
            return await super().connect(*where, **options)
        except BaseException:
            if self._made is not None:
                self._made.close()
            raise
