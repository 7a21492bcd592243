"""What checks find, and how they are run: each with a time limit, and none stops the others."""

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
    """What a check says of its subject. A warning leaves the exit code as it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of one subject (`part` "Kafka", `subject` "topic orders"), and how long it took to find out.

    `detail` says what is there; `error` what is wrong, where, and what to do.
    """

    part: str
    subject: str = ""
    outcome: CheckOutcome = CheckOutcome.OK
    detail: str = ""
    error: ContextError | None = None
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the archiver can't work like this."""
        return self.outcome is CheckOutcome.FAILED


def failure(part: str, error: ContextError, subject: str = "") -> Finding:
    """The finding that an error makes."""
    return Finding(part=part, subject=subject, outcome=CheckOutcome.FAILED, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of one part. `look` yields findings; what it raises is a failure of the part.

    No finding may take longer than `seconds`: then the check is given up, and its thread is left behind.
    """

    part: str
    look: Callable[[], Iterator[Finding]]
    seconds: float

    def findings(self) -> Iterator[Finding]:
        """Run the check, and yield its findings as they come, each with the seconds that it took."""
        found: SimpleQueue[Finding | None] = SimpleQueue()
        threading.Thread(target=self._work, args=(found,), name=f"check-{self.part}", daemon=True).start()
        while True:
            began = time.monotonic()
            try:
                each = found.get(timeout=self.seconds)
            except Empty:
                error = CheckFailed(
                    f"No answer within {self.seconds:g} s. Look at what it waits for, or give it longer with --timeout",
                    check=self.part,
                )
                yield replace(failure(self.part, error), seconds=time.monotonic() - began)
                return
            if each is None:
                return
            yield replace(each, seconds=time.monotonic() - began)

    def _work(self, found: SimpleQueue[Finding | None]) -> None:
        try:
            for each in self.look():
                found.put(each)
        except ContextError as error:
            found.put(failure(self.part, error))
        except Exception as error:  # noqa: BLE001 - one check that breaks must not hide what the others find
            found.put(failure(self.part, CheckFailed(f"{type(error).__name__}: {error}", check=self.part)))
        finally:
            found.put(None)
