"""The interface of the stack's servers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archiver.local.process import Launch
from archiver.local.state import StackState

Say = Callable[[str], None]
"""Shows people a few words on the current step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContext:
    folder: Path
    log: Path
    state: StackState

    def port(self, name: str) -> int:
        return self.state.ports[name]


class StackPart(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def port_names(self) -> tuple[str, ...]: ...

    @property
    def stop_signal(self) -> signal.Signals: ...

    def prepare(self, context: PartContext, say: Say) -> None:
        """Idempotent: called before each start."""

    def launch(self, context: PartContext) -> Launch: ...

    def tidy(self, context: PartContext) -> None:
        """Remove files outside its folder, after it has ended."""

    def suits(self, context: PartContext) -> bool:
        """Whether the running process has the current ports."""

    def is_ready(self, context: PartContext) -> bool: ...
