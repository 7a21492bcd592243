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
    """A part's folder and log, and the stack's ports and secrets."""

    folder: Path
    log: Path
    state: StackState

    def port(self, name: str) -> int:
        """Return the remembered port of this name."""
        return self.state.ports[name]


class StackPart(Protocol):
    """A server of the stack. It is stateless: everything about a stack is in the context."""

    @property
    def name(self) -> str:
        """A short name, used for the folder, the log and in `status`."""

    @property
    def title(self) -> str:
        """The displayed name."""

    @property
    def version(self) -> str:
        """The version of the server that would be started."""

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of the ports that it listens on."""

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that makes it shut down cleanly."""

    def prepare(self, context: PartContext, say: Say) -> None:
        """Fetch programs and make folders and files. Idempotent, as it is called before each start."""

    def launch(self, context: PartContext) -> Launch:
        """Return the command that starts it."""

    def tidy(self, context: PartContext) -> None:
        """Remove what it leaves outside its folder. Called after it has ended."""

    def suits(self, context: PartContext) -> bool:
        """Whether the running process was started for the current ports. If not, it must be restarted."""

    def is_ready(self, context: PartContext) -> bool:
        """Whether it serves. Returns False if the server isn't up."""
