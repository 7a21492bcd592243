"""Append to a topic's log in a thread: batches that come during a sync are the next group."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from archiver.errors import IntakeEnded, IntakeError
from archiver.intake.batches import Acknowledgement, IntakeBatch
from archiver.intake.clients import ClientPosition
from archiver.intake.events import GroupAppended, IntakeObserver
from archiver.intake.topic_log import Outcome, TopicLog
from archiver.observer import ignore

GROUP_BYTES: Final = 4 << 20


@dataclass(slots=True)
class _Append:
    batch: IntakeBatch
    done: Future[Acknowledgement] = field(default_factory=Future)


@dataclass(slots=True)
class _Fence:
    client: str
    principal: str
    is_look: bool
    done: Future[ClientPosition] = field(default_factory=Future)


@dataclass(slots=True)
class _Roll:
    done: Future[bool] = field(default_factory=Future)


_Request: TypeAlias = _Append | _Fence | _Roll


class LogThread:
    """Futures have the errors of `TopicLog.append`."""

    def __init__(self, log: TopicLog, *, name: str, observer: IntakeObserver = ignore) -> None:
        self._log = log
        self._name = name
        self._observer = observer
        self._requests: list[_Request] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"log-{name}", daemon=True)
        self._thread.start()

    def append(self, batch: IntakeBatch) -> Future[Acknowledgement]:
        request = _Append(batch)
        self._put(request)
        return request.done

    def fence(self, client: str, principal: str = "") -> Future[ClientPosition]:
        request = _Fence(client, principal, is_look=False)
        self._put(request)
        return request.done

    def position(self, client: str, principal: str = "") -> Future[ClientPosition]:
        """The position after durable batches: a batch that is being written may still fail."""
        request = _Fence(client, principal, is_look=True)
        self._put(request)
        return request.done

    def roll(self) -> Future[bool]:
        """Begin another segment after the waiting batches. False if there is no room."""
        request = _Roll()
        self._put(request)
        return request.done

    def close(self) -> None:
        """Finish the waiting requests, then refuse new ones."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._log.close()

    def _put(self, request: _Request) -> None:
        with self._changed:
            if self._is_closed:
                request.done.set_exception(IntakeEnded("the server stops taking in rows"))
                return
            self._requests.append(request)
            self._changed.notify()

    def _run(self) -> None:
        while taken := self._next_group():
            # A running request can't be cancelled any more. A cancelled one was not sent for all that its client knows.
            group = [request for request in taken if request.done.set_running_or_notify_cancel()]
            try:
                match group:
                    case []:
                        pass
                    case [_Roll() as roll]:
                        _settle(roll, self._log.roll())
                    case [_Fence(is_look=True) as look]:
                        _settle(look, self._log.position(look.client, look.principal))
                    case [_Fence() as fence]:
                        _settle(fence, self._log.fence(fence.client, fence.principal))
                    case appends:
                        batches = [request.batch for request in appends if isinstance(request, _Append)]
                        for request, outcome in zip(appends, self._append(batches), strict=True):
                            _settle(request, outcome)
            except IntakeError as error:
                for request in group:
                    if not request.done.done():
                        request.done.set_exception(error)

    def _append(self, batches: Sequence[IntakeBatch]) -> Sequence[Outcome]:
        started = time.perf_counter()
        outcomes = self._log.append(batches)
        taken = [
            batch for batch, outcome in zip(batches, outcomes, strict=True) if isinstance(outcome, Acknowledgement)
        ]
        self._observer(
            GroupAppended(
                topic=self._name,
                batches=len(batches),
                refused=len(batches) - len(taken),
                rows=sum(rows for batch in taken for _, rows in batch.rows),
                size_bytes=sum(len(batch.body) for batch in taken),
                seconds=time.perf_counter() - started,
            )
        )
        return outcomes

    def _next_group(self) -> Sequence[_Request]:
        """Several batches, or one other request. Empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests or self._is_closed)
            count = size = 0
            for request in self._requests:
                if not isinstance(request, _Append):
                    count = count or 1
                    break
                if count and size + len(request.batch.body) > GROUP_BYTES:
                    break
                count, size = count + 1, size + len(request.batch.body)
            group, self._requests = self._requests[:count], self._requests[count:]
        return group


def _settle(request: _Request, outcome: Acknowledgement | ClientPosition | IntakeError | bool) -> None:
    match request, outcome:
        case _, IntakeError():
            request.done.set_exception(outcome)
        case _Append(), Acknowledgement():
            request.done.set_result(outcome)
        case _Fence(), ClientPosition():
            request.done.set_result(outcome)
        case _Roll(), bool():
            request.done.set_result(outcome)
        case _:
            raise AssertionError(outcome)
