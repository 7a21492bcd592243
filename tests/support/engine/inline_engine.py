"""An engine with tasks in threads, pickled both ways."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from archiver.engine.threads import ThreadEngine


class InlineEngine(ThreadEngine):
    """An interrupt ends tasks that haven't begun."""

    slots = 2

    def __init__(self) -> None:
        super().__init__(self.slots)

    def _captured(self, run: Callable[[Any], Any], task: Any) -> bytes | None:
        return super()._captured(*pickle.loads(pickle.dumps((run, task))))
