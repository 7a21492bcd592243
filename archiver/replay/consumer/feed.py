"""One partition's records read ahead: at most one batch waits while another is consumed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future

import pyarrow as pa


class Feed:
    """A stream of batches whose next one is fetched in the background."""

    def __init__(self, stream: Iterator[pa.RecordBatch], executor: Executor) -> None:
        self._stream = stream
        self._executor = executor
        self._next = self._fetch()

    @property
    def future(self) -> Future[pa.RecordBatch | None]:
        """The next batch, None at the end of the stream."""
        return self._next

    def take(self) -> pa.RecordBatch | None:
        """Return the next batch, waiting for it, and start to fetch the one after; None at the end, then for ever.

        Raises what reading raised; the feed is of no more use then.
        """
        batch = self._next.result()
        if batch is not None:
            self._next = self._fetch()
        return batch

    def close(self) -> None:
        """Let go of the stream: at once, or when the read that is under way has ended."""
        self._next.cancel()
        self._next.add_done_callback(lambda _: _close(self._stream))

    def _fetch(self) -> Future[pa.RecordBatch | None]:
        return self._executor.submit(next, self._stream, None)


def _close(stream: Iterator[pa.RecordBatch]) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()
