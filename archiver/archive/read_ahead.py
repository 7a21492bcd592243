"""A stream whose next part is read in the background."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future, wait
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Reads at most one part ahead. No part may be None."""

    def __init__(self, stream: Iterator[T], executor: Executor) -> None:
        self._stream = stream
        self._executor = executor
        self._next = self._submit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(waits=True)

    def __iter__(self) -> Iterator[T]:
        while (part := self.take()) is not None:
            yield part

    @property
    def future(self) -> Future[T | None]:
        """None at the end of the stream."""
        return self._next

    def take(self) -> T | None:
        """Return None at the end. An error is raised and ends the stream."""
        part = self._next.result()
        if part is not None:
            self._next = self._submit()
        return part

    def close(self, *, waits: bool = False) -> None:
        """Close the stream after a running read. `waits`: return only then."""
        is_running = not self._next.cancel()
        if not waits:
            self._next.add_done_callback(lambda _: _close(self._stream))
            return
        if is_running:
            wait((self._next,))
        _close(self._stream)

    def _submit(self) -> Future[T | None]:
        return self._executor.submit(next, self._stream, None)


def _close(stream: Iterator[object]) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()
