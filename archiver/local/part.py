"""The seam between the stack and its servers: what a part must tell so that it can be started, watched and stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archiver.local.process import Launch
from archiver.local.state import StackState

Say = Callable[[str], None]
"""Takes a few words on what is being done now, for whoever watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContext:
    """Where one part lives: its own folder, its log, and the stack's ports and secrets."""

    folder: Path
    log: Path
    state: StackState

    def port(self, name: str) -> int:
        """The port remembered under this name."""
        return self.state.ports[name]


class Part(Protocol):
    """A server of the stack; stateless, so that what it knows of a stack comes with the context."""

    @property
    def name(self) -> str:
        """Short name: the folder, the log and the key in `status`."""

    @property
    def title(self) -> str:
        """What it is, for people."""

    @property
    def version(self) -> str:
        """The version of the server that would be started."""

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of the ports it listens on."""

    @property
    def stop_signal(self) -> signal.Signals:
        """The signal that ends it in good order."""

    def prepare(self, context: PartContext, say: Say) -> None:
        """Fetch programs, make folders and files; done again before each start, so idempotent."""

    def launch(self, context: PartContext) -> Launch:
        """The command that starts it."""

    def tidy(self, context: PartContext) -> None:
        """Remove what it leaves outside its folder; called when it has ended."""

    def suits(self, context: PartContext) -> bool:
        """Whether what runs was started for the ports as they are now; else it has to be started again."""

    def is_ready(self, context: PartContext) -> bool:
        """Whether it serves what the stack promises; never raises for a server that is not up."""
