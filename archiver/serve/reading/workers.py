"""Threads, so that the event loop never waits for a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, ParamSpec, Self, TypeVar

from archiver.serve.reading.turns import WorkerTurns

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_LOOKUPS: Final = 4


class Workers:
    """Pools for batches (`threads`), table lookups, and offsets of groups.

    None waits for another: commits continue while a catalog is slow.
    """

    def __init__(self, threads: int) -> None:
        self.batch_seconds = 0.0
        self._turns = WorkerTurns(threads)
        self._batches = ThreadPoolExecutor(threads, thread_name_prefix="batches")
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="lookups")
        self._offsets = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="offsets")

    @property
    def is_crowded(self) -> bool:
        return self._turns.is_crowded

    async def batches(self, function: Callable[[], _Result], *, opens: bool = False) -> _Result:
        """`opens`: files must be opened. Counted in `batch_seconds`."""

        def timed() -> tuple[_Result, float]:
            began = time.perf_counter()
            result = function()
            return result, time.perf_counter() - began

        async with self._turns.turn(opens=opens):
            result, seconds = await asyncio.get_running_loop().run_in_executor(self._batches, timed)
        self.batch_seconds += seconds
        return result

    async def lookup(
        self, function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._lookups, lambda: function(*args, **kwargs))

    async def offsets(
        self, function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        """In the request's context."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._offsets, lambda: context.run(function, *args, **kwargs)
        )

    def close(self) -> None:
        for pool in (self._batches, self._lookups, self._offsets):
            pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
