"""A connection's turns in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from archiver.serve.kafka.loop_budgets import Payer, TurnTaker
from archiver.serve.kafka.loop_time import SLICE_SECONDS, LoopTime
from archiver.serve.kafka.request_memory import HeldMemory

_Value = TypeVar("_Value")
_Element = TypeVar("_Element")

_LARGE: Final = 8 << 10
_SECONDS_A_BYTE: Final = 2e-7
"""What a large request takes at least, by its size: known before it is worked on."""
_ELEMENTS_A_LOOK: Final = 16


class ClientTurns(TurnTaker):
    """`run` measures the connection's time in the loop."""

    def __init__(self, loop_time: LoopTime, name: str, *, long_wait: float = 120.0) -> None:
        """A request waits at most `long_wait` seconds for long work. `name` is the payer's."""
        super().__init__(loop_time.payer(name))
        self._time = loop_time
        self._long_wait = long_wait
        self._mark = loop_time.clock()
        self._slice = 0.0
        self._request_seconds = 0.0
        self._has_budget = True
        self._long_work_of: Payer | None = None
        self._decoded: HeldMemory | None = None
        self.is_long_work = False
        """Whether the answer is being put together in several turns, or waits for that."""
        self._has_ended = False
        self.name = name

    def pay_as(self, name: str) -> None:
        if name != self.name:
            self.name, self.payer = name, self._time.payer(name)
            self.start = self.payer.last_start

    def spend(self, seconds: float) -> None:
        """Charge loop time taken elsewhere."""
        self._time.charge(self, seconds, budget=True)

    def run(self, work: Coroutine[Any, Any, _Value]) -> Awaitable[_Value]:
        return _Measured(work, self)

    def resumed(self) -> None:
        self.is_pipelined = False
        self._mark = self._time.clock()

    def reads(self) -> None:
        """If the next request is read without a wait, it is pipelined."""
        self.is_pipelined = True

    def suspended(self) -> None:
        now = self._time.clock()
        seconds, self._mark = now - self._mark, now
        self._slice += seconds
        self._request_seconds += seconds
        self._time.charge(self, seconds, budget=self._has_budget)

    async def begin(self, size: int = 0) -> None:
        """`size` is the next request's, in bytes."""
        self.suspended()
        self.expected_seconds = size * _SECONDS_A_BYTE if size > _LARGE else 0.0
        self.last_seconds = self._request_seconds
        self.payer.mean += (self._request_seconds - self.payer.mean) / 8
        self._request_seconds, self._has_budget = 0.0, True
        await self._turn()

    @property
    def is_over(self) -> bool:
        return self._slice + self._time.clock() - self._mark > SLICE_SECONDS

    async def again(self) -> None:
        """For the same request."""
        self.suspended()
        self.last_seconds, self.expected_seconds = SLICE_SECONDS, 0.0
        await self._turn()

    async def each(self, elements: Iterable[_Element]) -> AsyncIterator[_Element]:
        """Other clients get turns."""
        for number, element in enumerate(elements, 1):
            yield element
            if number % _ELEMENTS_A_LOOK == 0 and self.is_over:
                await self.begin_long_work()
                await self.again()

    def end_long_work(self) -> None:
        """Let the payer's next long request begin."""
        self.is_long_work = False
        if self._decoded is not None:
            self._time.decoded.free(self._decoded)
            self._decoded = None
        if self._long_work_of is not None:
            self._long_work_of.long_work.release()
            self._time.long_work.release()
            self._long_work_of = None

    def end(self) -> None:
        """Work that continues, as a commit, gets turns but no long work."""
        self._has_ended = True
        self.end_long_work()

    async def begin_long_work(self) -> None:
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

    async def decode(self, size: int, read: Callable[[], _Value]) -> _Value:
        """Waits for room for `size` bytes, held until `end_long_work`."""
        self._decoded = HeldMemory(self._time.decoded, self.name)
        async with self._in_time():
            await self._decoded.grow(size)
        return await self.in_thread(read)

    async def in_thread(self, work: Callable[[], _Value]) -> _Value:
        """Raises TimeoutError if its turn comes too late."""
        async with self._in_time():
            return await self._time.in_thread(self, work)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Raises TimeoutError: by then the client has given up."""
        try:
            async with asyncio.timeout(self._long_wait):
                yield
        except TimeoutError:
            raise TimeoutError(f"its long answer had no turn within {self._long_wait:g} seconds") from None

    def spare_budget(self, part: float = 1.0) -> None:
        """Don't charge this part: it brought records."""
        self._time.budgets.spare(self.payer, self._request_seconds * part)
        self._has_budget = part < 1

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
        waits_for: Any = None
        try:
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
        finally:
            # Else this frame keeps the error, which keeps this frame and the request until the next collection.
            # What was waited for keeps it, too: a gathering future has the error of what it gathered.
            waits_for = error = None
