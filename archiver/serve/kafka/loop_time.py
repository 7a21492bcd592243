"""Fair shares of the event loop's time, for principals and unauthenticated addresses.

Start-time fair queueing over payers, then their connections; pipelined requests come last. Fetches may use idle time;
other requests have a budget per payer.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

from archiver.serve.kafka.request_memory import RequestMemory

_Value = TypeVar("_Value")

SLICE_SECONDS: Final = 0.001
"""The loop time of one turn, and of all turns between two looks at the sockets. A request may take a bit more."""
_TURNS_AT_ONCE: Final = 4
"""Turns between two looks at the sockets: what a turn costs is known afterwards only."""
_BURST_SECONDS: Final = 5.0
"""Loop time that a payer may save up: it covers the start of hundreds of clients."""
_MOST_DEBT: Final = 2.5
_LEAST_WAIT: Final = 0.001
_MOST_PAYERS: Final = 10_000
_DECODED_BYTES: Final = 4 << 20
"""Bytes of large requests that are decoded and not answered yet: each byte becomes up to a hundred of objects."""
_LONG_AT_ONCE: Final = 8
"""Requests, of as many payers, whose answers are put together in several turns."""


@dataclass(slots=True, eq=False)
class Payer:
    """A principal or an address. `start` orders payers; `level` is its remaining budget in seconds."""

    level: float
    at: float
    start: float = 0.0
    last_start: float = 0.0
    """Of its connection that had the last turn."""
    mean: float = 0.0
    long_work: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one request whose answer is being put together in several turns: long answers take much memory."""
    waiting: list[tuple[bool, float, int, asyncio.Future[None], TurnTaker]] = field(default_factory=list)
    is_queued: bool = False


@dataclass(slots=True, eq=False)
class TurnTaker:
    """A connection, as turns are handed out: what it used, and what its next turn may take in seconds."""

    payer: Payer
    start: float = 0.0
    last_seconds: float = 0.0
    expected_seconds: float = 0.0
    prepaid: float = 0.0
    is_pipelined: bool = False
    """Whether the request came before the previous answer: within a payer, other requests go first."""


_Job: TypeAlias = "tuple[float, int, asyncio.Future[Any], TurnTaker, Callable[[], Any]]"
_Ran: TypeAlias = tuple[Any, Exception | None, float]
"""The result of work, its error, and the seconds of the processor that it took."""


class LoopTime:
    """Schedules turns. Use it from one event loop."""

    def __init__(self, *, share: float = 0.25, clock: Callable[[], float] = time.thread_time) -> None:
        """`share` is one payer's part of the time in the long run; `clock` counts the loop's work."""
        self._share = share
        self.clock = clock
        self._payers: OrderedDict[str, Payer] = OrderedDict()
        self._ready: list[tuple[float, int, Payer]] = []
        self._number = count()
        self._start = 0.0
        self._pass_seconds = 0.0
        self._pass_turns = 0
        self._is_scheduled = False
        self._jobs: list[_Job] = []
        self._held_jobs: list[_Job] = []
        """Of payers that are over their budget: a timer returns them to the queue."""
        self._has_job = False
        self._thread: ThreadPoolExecutor | None = None
        self.long_work = asyncio.Semaphore(_LONG_AT_ONCE)
        self.decoded = RequestMemory(_DECODED_BYTES)
        self.seconds = 0.0
        """Seconds that clients' requests took."""
        self.waiting = 0
        """Connections that wait for a turn."""
        self.over_budget = 0
        """How often a payer was made to wait, as it was over its budget."""

    @property
    def has_long_work(self) -> bool:
        """Whether there are large requests, or a thread works for a request."""
        return self._has_job or self.decoded.bytes > 0

    def payer(self, name: str) -> Payer:
        payer = self._payers.get(name)
        if payer is None:
            payer = self._payers[name] = Payer(_BURST_SECONDS, asyncio.get_running_loop().time())
            self._forget()
        self._payers.move_to_end(name)
        return payer

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def admits(self, client: TurnTaker) -> bool:
        """Grant a turn if nothing waits for one; otherwise the client must `wait`."""
        self._schedule()
        payer = client.payer
        if self._ready or payer.is_queued or self._pass_turns >= _TURNS_AT_ONCE or self._pass_seconds >= SLICE_SECONDS:
            return False
        if self._budget(payer) <= 0:
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
            payer.level = max(payer.level - seconds, -_MOST_DEBT)

    async def in_thread(self, client: TurnTaker, work: Callable[[], _Value]) -> _Value:
        """Do long work in one thread, ordered by used time: more threads would take the GIL from the loop."""
        start = max(client.payer.start, self._start)
        done: asyncio.Future[_Value] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._jobs, (start, next(self._number), done, client, work))
        self._begin_job()
        return await done

    def _begin_job(self) -> None:
        while self._jobs and not self._has_job:
            job = heapq.heappop(self._jobs)
            _, _, done, client, work = job
            if done.done():
                continue
            budget = self._budget(client.payer)
            if budget <= 0:
                self._hold_job(job, -budget / self._share)
                continue
            self._has_job = True
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="long-work")
            asyncio.get_running_loop().run_in_executor(self._thread, _timed, work).add_done_callback(
                partial(self._end_job, client, done)
            )

    def _hold_job(self, job: _Job, seconds: float) -> None:
        """Keep a job of a payer over its budget back: the thread takes the interpreter from the loop."""
        if not self._held_jobs:
            self.over_budget += 1
            asyncio.get_running_loop().call_later(max(_LEAST_WAIT, seconds), self._return_jobs)
        self._held_jobs.append(job)

    def _return_jobs(self) -> None:
        jobs, self._held_jobs = self._held_jobs, []
        for job in jobs:
            heapq.heappush(self._jobs, job)
        self._begin_job()

    def _end_job(self, client: TurnTaker, done: asyncio.Future[Any], ran: asyncio.Future[_Ran]) -> None:
        self._has_job = False
        if ran.cancelled():  # the server ends
            done.cancel()
            return
        value, error, seconds = ran.result()
        client.payer.start += seconds
        client.start += seconds
        client.payer.level = max(client.payer.level - seconds, -_MOST_DEBT)
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
        budget = self._budget(payer)
        if budget > 0:
            heapq.heappush(self._ready, (payer.start, next(self._number), payer))
            self._schedule()
            return
        self.over_budget += 1
        loop = asyncio.get_running_loop()
        loop.call_later(max(_LEAST_WAIT, -budget / self._share), self._return, payer)

    def _return(self, payer: Payer) -> None:
        payer.is_queued = False
        if payer.waiting:
            self._queue(payer)

    def _budget(self, payer: Payer) -> float:
        now = asyncio.get_running_loop().time()
        payer.level = min(_BURST_SECONDS, payer.level + (now - payer.at) * self._share)
        payer.at = now
        return payer.level

    def _forget(self) -> None:
        while len(self._payers) > _MOST_PAYERS:
            name, payer = next(iter(self._payers.items()))
            if payer.waiting or self._budget(payer) < _BURST_SECONDS:
                return
            del self._payers[name]


def _timed(work: Callable[[], Any]) -> _Ran:
    began = time.thread_time()
    try:
        value, error = work(), None
    except Exception as raised:  # noqa: BLE001 - raised again by the waiting request
        value, error = None, raised
    return value, error, time.thread_time() - began
