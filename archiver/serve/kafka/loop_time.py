"""Fair shares of the event loop's time, for principals and unauthenticated addresses.

Start-time fair queueing over payers, then their connections; pipelined requests come last. Fetches may use idle time;
other requests have a budget per payer.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar

_Value = TypeVar("_Value")
_Element = TypeVar("_Element")

SLICE_SECONDS: Final = 0.004
"""The loop time of one turn, and of all turns between two looks at the sockets. A request may take a bit more."""
_TURNS_AT_ONCE: Final = 16
"""Turns between two looks at the sockets: what a turn costs is known afterwards only."""
_BURST_SECONDS: Final = 5.0
"""Loop time that a payer may save up: it covers the start of hundreds of clients."""
_LARGE: Final = 8 << 10
_SECONDS_A_BYTE: Final = 2e-7
"""What a large request takes at least, by its size: known before it is worked on."""
_MOST_DEBT: Final = 2.5
_LEAST_WAIT: Final = 0.001
_MOST_PAYERS: Final = 10_000
_ELEMENTS_A_LOOK: Final = 16
_LONG_AT_ONCE: Final = 8
"""Requests, of as many payers, whose answers are put together in several turns."""
_LONG_SECONDS: Final = 0.002
"""An answer that took this long to put together is encoded in a thread."""


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
    waiting: list[tuple[bool, float, int, asyncio.Future[None], ClientTurns]] = field(default_factory=list)
    is_queued: bool = False


_Job: TypeAlias = "tuple[float, int, asyncio.Future[Any], ClientTurns, Callable[[], Any]]"
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
        self._has_job = False
        self._thread: ThreadPoolExecutor | None = None
        self.long_work = asyncio.Semaphore(_LONG_AT_ONCE)
        self.seconds = 0.0
        """Seconds that clients' requests took."""
        self.waiting = 0
        """Connections that wait for a turn."""
        self.over_budget = 0
        """How often a payer was made to wait, as it was over its budget."""

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

    def admits(self, client: ClientTurns) -> bool:
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

    async def wait(self, client: ClientTurns) -> None:
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

    def charge(self, client: ClientTurns, seconds: float, *, budget: bool) -> None:
        payer = client.payer
        payer.start += seconds - client.prepaid
        client.start += seconds
        self._pass_seconds += seconds - client.prepaid
        client.prepaid = 0.0
        self.seconds += seconds
        if budget:
            payer.level = max(payer.level - seconds, -_MOST_DEBT)

    async def in_thread(self, client: ClientTurns, work: Callable[[], _Value]) -> _Value:
        """Do long work in one thread, ordered by used time: more threads would take the GIL from the loop."""
        start = max(client.payer.start, self._start)
        done: asyncio.Future[_Value] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._jobs, (start, next(self._number), done, client, work))
        self._begin_job()
        return await done

    def _begin_job(self) -> None:
        while self._jobs and not self._has_job:
            _, _, done, client, work = heapq.heappop(self._jobs)
            if done.done():
                continue
            self._has_job = True
            self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="long-work")
            asyncio.get_running_loop().run_in_executor(self._thread, _timed, work).add_done_callback(
                partial(self._end_job, client, done)
            )

    def _end_job(self, client: ClientTurns, done: asyncio.Future[Any], ran: asyncio.Future[_Ran]) -> None:
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

    def _begin(self, payer: Payer, client: ClientTurns, start: float) -> None:
        payer.start = max(payer.start, self._start)
        self._start = payer.start
        client.start = payer.last_start = max(start, payer.last_start)
        self._pass_turns += 1

    def _prepay(self, payer: Payer, client: ClientTurns, seconds: float) -> None:
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


class ClientTurns:
    def __init__(self, loop_time: LoopTime, name: str, *, long_wait: float = 120.0) -> None:
        self._time = loop_time
        self._long_wait = long_wait
        self._mark = loop_time.clock()
        self._slice = 0.0
        self._request_seconds = 0.0
        self._has_budget = True
        self._long_work_of: Payer | None = None
        self.is_long_work = False
        """Whether the answer is being put together in several turns, or waits for that."""
        self._has_ended = False
        self.name = name
        self.payer = loop_time.payer(name)
        self.start = 0.0
        self.last_seconds = 0.0
        self.expected_seconds = 0.0
        self.prepaid = 0.0
        self.is_pipelined = False
        """Whether the request came before the previous answer: within a payer, other requests go first."""

    def pay_as(self, name: str) -> None:
        if name != self.name:
            self.name, self.payer = name, self._time.payer(name)
            self.start = self.payer.last_start

    def spend(self, seconds: float) -> None:
        self._time.charge(self, seconds, budget=True)

    def run(self, work: Coroutine[Any, Any, _Value]) -> Awaitable[_Value]:
        return _Measured(work, self)

    def resumed(self) -> None:
        self.is_pipelined = False
        self._mark = self._time.clock()

    def reads(self) -> None:
        self.is_pipelined = True

    def suspended(self) -> None:
        now = self._time.clock()
        seconds, self._mark = now - self._mark, now
        self._slice += seconds
        self._request_seconds += seconds
        self._time.charge(self, seconds, budget=self._has_budget)

    async def begin(self, size: int = 0) -> None:
        self.suspended()
        self.expected_seconds = size * _SECONDS_A_BYTE if size > _LARGE else 0.0
        self.last_seconds = self._request_seconds
        self.payer.mean += (self._request_seconds - self.payer.mean) / 8
        self._request_seconds, self._has_budget = 0.0, True
        await self._turn()

    @property
    def is_over(self) -> bool:
        return self._slice + self._time.clock() - self._mark > SLICE_SECONDS

    @property
    def is_long(self) -> bool:
        return self._request_seconds + self._time.clock() - self._mark > _LONG_SECONDS

    async def again(self) -> None:
        self.suspended()
        self.last_seconds, self.expected_seconds = SLICE_SECONDS, 0.0
        await self._turn()

    async def each(self, elements: Iterable[_Element]) -> AsyncIterator[_Element]:
        for number, element in enumerate(elements, 1):
            yield element
            if number % _ELEMENTS_A_LOOK == 0 and self.is_over:
                await self._begin_long_work()
                await self.again()

    def end_long_work(self) -> None:
        self.is_long_work = False
        if self._long_work_of is not None:
            self._long_work_of.long_work.release()
            self._time.long_work.release()
            self._long_work_of = None

    def end(self) -> None:
        self._has_ended = True
        self.end_long_work()

    async def _begin_long_work(self) -> None:
        payer = self.payer
        if self._has_ended or self._long_work_of is not None:
            return
        self.is_long_work = True
        async with self._in_time():
            await payer.long_work.acquire()
            try:
                await self._time.long_work.acquire()
            except BaseException:
                payer.long_work.release()
                raise
        self._take_long_work(payer)

    def _take_long_work(self, payer: Payer) -> None:
        self._long_work_of = payer
        if self._has_ended:  # while it waited
            self.end_long_work()

    async def in_thread(self, work: Callable[[], _Value]) -> _Value:
        """Do long work in a thread. Raises TimeoutError if its turn doesn't come in time."""
        async with self._in_time():
            return await self._time.in_thread(self, work)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._long_wait):
                yield
        except TimeoutError:
            raise TimeoutError(f"its long answer had no turn within {self._long_wait:g} seconds") from None

    def spare_budget(self) -> None:
        """Exempt the request from the payer's budget: it returned records."""
        self.payer.level += self._request_seconds
        self._has_budget = False

    async def _turn(self) -> None:
        if not self._time.admits(self):
            await self._time.wait(self)
        self._slice = 0.0


class _Measured(Awaitable[_Value]):
    __slots__ = ("_turns", "_work")

    def __init__(self, work: Coroutine[Any, Any, _Value], turns: ClientTurns) -> None:
        self._work = work
        self._turns = turns

    def __await__(self) -> Generator[Any, Any, _Value]:
        error: BaseException | None = None
        while True:
            self._turns.resumed()
            try:
                waits_for = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as stop:
                result: _Value = stop.value
                return result
            finally:
                self._turns.suspended()
            error = None
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001 - the coroutine decides about it
                error = raised


def _timed(work: Callable[[], Any]) -> _Ran:
    began = time.thread_time()
    try:
        value, error = work(), None
    except Exception as raised:  # noqa: BLE001 - raised again by the waiting request
        value, error = None, raised
    return value, error, time.thread_time() - began
