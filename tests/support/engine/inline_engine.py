"""An engine without Spark: tasks run in threads of this process, pickled on their way in and out as Spark would."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from archiver.engine.threads import ThreadEngine


class InlineEngine(ThreadEngine):
    """An Engine for tests of what stands around tasks; an interrupt ends those that haven't begun."""

    slots = 2

    def __init__(self) -> None:
        super().__init__(self.slots)

    def _captured(self, run: Callable[[Any], Any], task: Any) -> bytes | None:
        return super()._captured(*pickle.loads(pickle.dumps((run, task))))
