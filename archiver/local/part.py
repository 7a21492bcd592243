"""The interface of the stack's servers: what a part must tell so that it can be started, watched and stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archiver.local.process import Launch
from archiver.local.state import StackState

Say = Callable[[str], None]
"""Takes a few words on what is being done now, to show to people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContext:
    """What one part is given of its stack: its own folder, its log, and the stack's ports and secrets."""

    folder: Path
    log: Path
    state: StackState

    def port(self, name: str) -> int:
        """Return the remembered port of this name."""
        return self.state.ports[name]


class Part(Protocol):
    """A server of the stack. It has no state of its own: everything about a stack is in the context."""

    @property
    def name(self) -> str:
        """A short name, used for the folder, the log and in `status`."""

    @property
    def title(self) -> str:
        """The name that people are shown."""

    @property
    def version(self) -> str:
        """The version of the server that would be started."""

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of the ports that it listens on."""

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that makes it shut down in good order."""

    def prepare(self, context: PartContext, say: Say) -> None:
        """Fetch programs and make folders and files. Called before each start, so it must be idempotent."""

    def launch(self, context: PartContext) -> Launch:
        """Return the command that starts it."""

    def tidy(self, context: PartContext) -> None:
        """Remove what it leaves outside its folder. Called after it has ended."""

    def suits(self, context: PartContext) -> bool:
        """Whether the running process was started for the current ports. If not, it must be restarted."""

    def is_ready(self, context: PartContext) -> bool:
        """Whether it serves what the stack promises. Never raises if the server isn't up."""
