"""Starts one part from any state."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import LocalStackError
from archiver.local import ports, process, strays
from archiver.local.part import PartContext, Say, StackPart
from archiver.local.state import StackState, StateFile

READY_WITHIN = 60.0
"""Seconds from a server's start to its first right answer, at most."""

_STOP_WITHIN = 20.0
_POLL = 0.1
_PORT_ATTEMPTS = 3
_PORT_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRunner:
    part: StackPart
    directory: Path
    state_file: StateFile

    @property
    def context(self) -> PartContext:
        return context_of(self.part, self.directory, self.state_file.current)

    @property
    def mark(self) -> process.ProcessMark | None:
        return self.state_file.current.processes.get(self.part.name)

    @property
    def _ports(self) -> tuple[int, ...]:
        ports = self.state_file.current.ports
        return tuple(ports[name] for name in self.part.port_names if name in ports)

    @property
    def is_up(self) -> bool:
        return process.is_running(self.mark) and self.part.suits(self.context) and self.part.is_ready(self.context)

    def reserve_ports(self, say: Say) -> None:
        if not process.is_running(self.mark):
            self._find_ports(say)

    def start(self, say: Say, cancelled: threading.Event, *, ready_within: float = READY_WITHIN) -> bool:
        """False if it was up. Raises LocalStackError with the end of the part's log."""
        begun = time.monotonic()
        if self.is_up:
            say("already up")
            return False
        for _ in range(_PORT_ATTEMPTS):
            self.stop(_unheard)
            self._find_ports(say)
            self.part.prepare(self.context, say)
            say("starting")
            mark = process.spawn(self.part.launch(self.context))
            self._note(mark)
            if self._await_ready(mark, cancelled, ready_within):
                say(f"ready in {time.monotonic() - begun:.1f} s")
                return True
            if not self._lost_ports():
                break
            say("a port was taken in between; trying others")
        raise self._failure(ready_within)

    def stop(self, say: Say) -> bool:
        mark = self.mark
        stopped = process.stop(mark, with_signal=self.part.stop_signal, timeout=_STOP_WITHIN)
        stopped |= strays.end(self.context.folder, with_signal=self.part.stop_signal, timeout=_STOP_WITHIN)
        self.part.tidy(self.context)
        if stopped:
            say("stopped")
        if mark is not None:
            self._note(None)
        return stopped

    def _note(self, mark: process.ProcessMark | None) -> None:
        self.state_file.change(lambda state: state.with_process(self.part.name, mark))

    def _find_ports(self, say: Say) -> None:
        mine = self._ports
        # The kernel may still be closing the ports of a killed server.
        if len(mine) == len(self.part.port_names) and ports.all_free(mine, within=_PORT_SECONDS):
            return
        if mine:
            say("its port is taken by another program; moving to others")
        self.state_file.change(
            lambda state: state.with_ports(ports.choose(self.part.port_names, avoid=tuple(state.ports.values())))
        )

    def _lost_ports(self) -> bool:
        return not process.is_running(self.mark) and not ports.all_free(self._ports, within=0)

    def _await_ready(self, mark: process.ProcessMark, cancelled: threading.Event, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not cancelled.is_set():
            if not process.is_running(mark):
                return False
            # Another stack may answer on this port; then the new process is about to fail on it.
            if self.part.is_ready(self.context) and process.listens(mark, self._ports):
                return True
            cancelled.wait(_POLL)
        return False

    def _failure(self, ready_within: float) -> LocalStackError:
        log = self.context.log
        running = process.is_running(self.mark)
        what = f"did not get ready within {ready_within:.0f} s" if running else "ended while starting"
        return LocalStackError(
            f"{self.part.title} {what}. Its log ends with\n{process.tail(log)}\n"
            f"Mend what it says and run `archiver local up` again; parts that are up stay up",
            log=str(log),
        )


def context_of(part: StackPart, directory: Path, state: StackState) -> PartContext:
    return PartContext(folder=directory / part.name, log=directory / "logs" / f"{part.name}.log", state=state)


def _unheard(step: str) -> None:
    del step
