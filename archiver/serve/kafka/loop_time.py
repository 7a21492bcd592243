"""Fair shares of the event loop's time, per principal or unauthenticated address.

Start-time fair queueing over payers, then connections; pipelined requests last. Fetches may use idle time, other
requests have budgets.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

from archiver.serve.kafka.loop_budgets import LoopBudgets, Payer, TurnTaker
from archiver.serve.kafka.request_memory import RequestMemory

_Value = TypeVar("_Value")

SLICE_SECONDS: Final = 0.001
"""The loop time of one turn, and of all turns between two looks at the sockets. A request may take a bit more."""
_TURNS_AT_ONCE: Final = 4
"""Turns between two looks at the sockets: what a turn costs is known afterwards only."""
_LEAST_WAIT: Final = 0.001
_DECODED_BYTES: Final = 4 << 20
"""Bytes of large requests that are decoded and not answered yet: each byte becomes up to a hundred of objects."""
LONG_AT_ONCE: Final = 8
"""Requests, of as many payers, whose answers are put together in several turns."""


_Job: TypeAlias = "tuple[float, int, asyncio.Future[Any], TurnTaker, Callable[[], Any]]"
_Ran: TypeAlias = tuple[Any, Exception | None, float]
"""The result of work, its error, and the seconds that it took."""


class LoopTime:
    """Schedules turns. Use it from one event loop."""

    def __init__(self, *, share: float = 0.25, clock: Callable[[], float] = time.perf_counter) -> None:
        """`share` is one payer's part in the long run.

        Budgets grow by wall time, which also measures work: a loop that gets a fifth of a core has a fifth to share.
        Reading a thread's CPU time takes five times as long, too.
        """
        self.budgets = LoopBudgets(share)
        self.clock = clock
        self._ready: list[tuple[float, int, Payer]] = []
        self._held: list[tuple[float, int, Payer]] = []
        """Payers over their budgets that wait for the common one."""
        self._is_releasing = False
        self._common_start = 0.0
        self._number = count()
        self._start = 0.0
        self._pass_seconds = 0.0
        self._pass_turns = 0
        self._is_scheduled = False
        self._jobs: list[_Job] = []
        self._has_job = False
        self._thread: ThreadPoolExecutor | None = None
        self.long_work = asyncio.Semaphore(LONG_AT_ONCE)
        self.decoded = RequestMemory(_DECODED_BYTES)
        self.seconds = 0.0
        """Seconds that clients' requests took."""
        self.waiting = 0
        """Connections that wait for a turn."""
        self.over_budget = 0
        """How often a payer was made to wait, as it was over its budget."""

    @property
    def has_long_work(self) -> bool:
        return self._has_job or self.decoded.bytes > 0

    def payer(self, name: str) -> Payer:
        return self.budgets.payer(name)

    def is_over_budget(self, payer: Payer) -> bool:
        return self.budgets.delay(payer) > 0 and self.budgets.common_delay(payer) is not None

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def admits(self, client: TurnTaker) -> bool:
        """If false, the client must `wait`."""
        self._schedule()
        payer = client.payer
        if self._ready or payer.is_queued or self._pass_turns >= _TURNS_AT_ONCE or self._pass_seconds >= SLICE_SECONDS:
            return False
        if self.budgets.delay(payer):
            return False
        self._begin(payer, client, max(client.start, payer.last_start))
        self._prepay(payer, client, client.expected_seconds)
        return True

    async def wait(self, client: TurnTaker) -> None:
        payer = client.payer
        if not payer.waiting:
            payer.start = max(payer.start, self._start)
        future = asyncio.get_running_loop().create_future()
        client.start = max(client.start, payer.last_start)
        heapq.heappush(payer.waiting, (client.is_pipelined, client.start, next(self._number), future, client))
        self.waiting += 1
        self._queue(payer)
        try:
            await future
        finally:
            self.waiting -= 1

    def charge(self, client: TurnTaker, seconds: float, *, budget: bool) -> None:
        payer = client.payer
        payer.start += seconds - client.prepaid
        client.start += seconds
        self._pass_seconds += seconds - client.prepaid
        client.prepaid = 0.0
        self.seconds += seconds
        if budget:
            self.budgets.charge(payer, seconds, is_common=payer.is_common)

    def charge_payer(self, payer: Payer, seconds: float) -> None:
        """Charge work of no connection."""
        payer.start = max(payer.start, self._start) + seconds
        self._pass_seconds += seconds
        self.seconds += seconds
        self.budgets.charge(payer, seconds)

    async def in_thread(self, client: TurnTaker, work: Callable[[], _Value]) -> _Value:
        """One thread: more would take the GIL from the loop."""
        start = max(client.payer.start, self._start)
        done: asyncio.Future[_Value] = asyncio.get_running_loop().create_future()
        if self._job_delay(client.payer)[0]:
            self.over_budget += 1
        self._return_job((start, next(self._number), done, client, work))
        return await done

    def _begin_job(self) -> None:
        while self._jobs and not self._has_job:
            job = heapq.heappop(self._jobs)
            _, _, done, client, work = job
            if done.done():
                continue
            delay, is_common = self._job_delay(client.payer)
            if delay:  # the thread takes the interpreter from the loop
                asyncio.get_running_loop().call_later(max(_LEAST_WAIT, delay), self._return_job, job)
                continue
            self._has_job = True
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="long-work")
            asyncio.get_running_loop().run_in_executor(self._thread, _timed, work).add_done_callback(
                partial(self._end_job, client, done, is_common)
            )

    def _job_delay(self, payer: Payer) -> tuple[float, bool]:
        """Return seconds, and whether the common budget pays."""
        delay = self.budgets.delay(payer)
        common = self.budgets.common_delay(payer, is_long=True) if delay else None
        return (delay, False) if common is None else (common, True)

    def _return_job(self, job: _Job) -> None:
        heapq.heappush(self._jobs, job)
        self._begin_job()

    def _end_job(
        self, client: TurnTaker, done: asyncio.Future[Any], is_common: bool, ran: asyncio.Future[_Ran]
    ) -> None:
        self._has_job = False
        if ran.cancelled():  # the server ends
            done.cancel()
            return
        value, error, seconds = ran.result()
        client.payer.start += seconds
        client.start += seconds
        if is_common:
            self.budgets.charge_long_work(client.payer, seconds)
        else:
            self.budgets.charge(client.payer, seconds)
        self.seconds += seconds
        if not done.done():
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)
        self._begin_job()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._give_turns)

    def _give_turns(self) -> None:
        self._pass_seconds = 0.0
        self._pass_turns = 0
        while self._ready and self._pass_turns < _TURNS_AT_ONCE and self._pass_seconds < SLICE_SECONDS:
            start, _, payer = heapq.heappop(self._ready)
            if payer.start > start:
                heapq.heappush(self._ready, (payer.start, next(self._number), payer))
                continue
            payer.is_queued = False
            while payer.waiting:
                _, own_start, _, future, client = heapq.heappop(payer.waiting)
                if not future.done():
                    self._begin(payer, client, own_start)
                    self._prepay(payer, client, max(client.expected_seconds, client.last_seconds, payer.mean))
                    future.set_result(None)
                    break
            if payer.waiting:
                self._queue(payer)
        self._is_scheduled = False
        if self._ready:
            self._schedule()  # after the clients that have a turn now: they may need another one

    def _begin(self, payer: Payer, client: TurnTaker, start: float) -> None:
        payer.start = max(payer.start, self._start)
        self._start = payer.start
        client.start = payer.last_start = max(start, payer.last_start)
        self._pass_turns += 1

    def _prepay(self, payer: Payer, client: TurnTaker, seconds: float) -> None:
        client.prepaid = seconds
        payer.start += seconds
        self._pass_seconds += seconds

    def _queue(self, payer: Payer) -> None:
        if payer.is_queued:
            return
        payer.is_queued = True
        delay = self.budgets.delay(payer)
        if not delay:
            self._make_ready(payer)
            return
        self.over_budget += 1
        if self.budgets.common_delay(payer) is not None:
            payer.common_start = max(payer.common_start, self._common_start)
            heapq.heappush(self._held, (payer.common_end, next(self._number), payer))
            self._release_later()
            return
        asyncio.get_running_loop().call_later(max(_LEAST_WAIT, delay), self._return, payer)

    def _make_ready(self, payer: Payer) -> None:
        heapq.heappush(self._ready, (payer.start, next(self._number), payer))
        self._schedule()

    def _release_later(self) -> None:
        if self._held and not self._is_releasing:
            self._is_releasing = True
            delay = self.budgets.common_delay(self._held[0][2]) or 0.0
            asyncio.get_running_loop().call_later(max(_LEAST_WAIT, delay), self._release)

    def _release(self) -> None:
        """One turn at a time: its cost is known afterwards."""
        self._is_releasing = False
        while self._held:
            delay = self.budgets.common_delay(self._held[0][2])
            if delay:
                break
            end, _, payer = heapq.heappop(self._held)
            if payer.common_end > end:  # it was queued before its last turn was charged
                heapq.heappush(self._held, (payer.common_end, next(self._number), payer))
                continue
            if delay is not None and payer.waiting:
                payer.is_common, self._common_start = True, payer.common_start
                self._make_ready(payer)
                break
            self._return(payer)
        self._release_later()

    def _return(self, payer: Payer) -> None:
        payer.is_queued = False
        if payer.waiting:
            self._queue(payer)


def _timed(work: Callable[[], Any]) -> _Ran:
    began = time.perf_counter()
    try:
        value, error = work(), None
    except Exception as raised:  # noqa: BLE001 - raised again by the waiting request
        value, error = None, raised
    return value, error, time.perf_counter() - began
