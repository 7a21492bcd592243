"""Findings with time limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from queue import Empty, SimpleQueue

from archiver.errors import CheckFailed
from schema_mapping.errors import ContextError


class CheckOutcome(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`part` is "Kafka", `subject` "topic orders"."""

    part: str
    subject: str = ""
    outcome: CheckOutcome = CheckOutcome.OK
    detail: str = ""
    error: ContextError | None = None
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.outcome is CheckOutcome.FAILED


def failure(part: str, error: ContextError, subject: str = "") -> Finding:
    return Finding(part=part, subject=subject, outcome=CheckOutcome.FAILED, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Abandoned with its thread if a finding takes longer than `seconds`."""

    part: str
    look: Callable[[], Iterator[Finding]]
    seconds: float

    def findings(self) -> Iterator[Finding]:
        queue: SimpleQueue[Finding | None] = SimpleQueue()
        threading.Thread(target=self._work, args=(queue,), name=f"check-{self.part}", daemon=True).start()
        while True:
            began = time.monotonic()
            try:
                finding = queue.get(timeout=self.seconds)
            except Empty:
                error = CheckFailed(
                    f"No answer within {self.seconds:g} s. Look at what it waits for, or give it longer with --timeout",
                    check=self.part,
                )
                yield replace(failure(self.part, error), seconds=time.monotonic() - began)
                return
            if finding is None:
                return
            yield replace(finding, seconds=time.monotonic() - began)

    def _work(self, found: SimpleQueue[Finding | None]) -> None:
        try:
            for finding in self.look():
                found.put(finding)
        except ContextError as error:
            found.put(failure(self.part, error))
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide other findings
            found.put(failure(self.part, CheckFailed(f"{type(error).__name__}: {error}", check=self.part)))
        finally:
            found.put(None)
