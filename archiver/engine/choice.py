"""Chooses a job's engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.engine.threads import ThreadEngine

if TYPE_CHECKING:
    from archiver.engine.spark import SparkEngine

HERE_BYTES: Final = 1 << 30
"""Files of at most this many bytes are rewritten in this process, as starting Spark takes longer."""


class EngineChoice:
    """`given`, threads for at most `here_bytes` of work, else Spark or `starts`."""

    def __init__(
        self,
        options: Mapping[str, str],
        given: Engine | None = None,
        *,
        starts: Callable[[], Engine] | None = None,
        here_bytes: int = -1,
        preloaded: Sequence[str] = (),
        heaps: int = 1,
    ) -> None:
        self._options = options
        self._given = given
        self._starts = starts
        self._here_bytes = here_bytes
        self._preloaded = preloaded
        self._heaps = heaps
        self._started: Engine | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def check(self) -> None:
        """Raises ConfigError if Spark may be needed and can't start. Starts nothing."""
        if self._given is None and self._starts is None:
            check_spark(self._options)

    def of_bytes(self, size_bytes: int) -> Engine:
        """Raises the errors of `SparkEngine.start`."""
        if self._given is None and size_bytes <= self._here_bytes:
            return ThreadEngine()
        return self.engine

    @property
    def engine(self) -> Engine:
        """Raises the errors of `SparkEngine.start`."""
        if self._given is not None:
            return self._given
        if self._started is None:
            self._started = self._starts() if self._starts else self._start()
        return self._started

    def _start(self) -> Engine:
        return self._closing.enter_context(start_spark(self._options, preloaded=self._preloaded, heaps=self._heaps))


def start_spark(options: Mapping[str, str], *, preloaded: Sequence[str], heaps: int) -> SparkEngine:
    """Importing PySpark takes a second. Raises the errors of `SparkEngine.start`."""
    from archiver.engine.spark import SparkEngine

    return SparkEngine.start(options, preloaded=preloaded, heaps=heaps)
