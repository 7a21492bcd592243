"""Commands in processes, which faults really kill."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from archiver.fault_points import VARIABLE
from tests.chaos.commands import Commands
from tests.chaos.said import Said, said_by
from tests.support.engine.forked import FORKED

KILLED: Final = "killed by a signal"
_SECONDS: Final = 600.0


def said_by_process(command: Callable[[Commands], Any], commands: Commands) -> Said:
    """Run a picklable command in a process, without its report.

    Raises TimeoutError, and RuntimeError with the log of a process that neither ended nor was killed.
    """
    receiving, sending = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=_run, args=(command, commands, sending))
    process.start()
    sending.close()
    process.join(_SECONDS)
    if process.exitcode is None:
        process.kill()
        raise TimeoutError(f"a command doesn't end in {_SECONDS:.0f} s: {_log(commands)}")
    if process.exitcode == -signal.SIGKILL:
        return Said(succeeded=False, texts=(KILLED,))
    try:
        succeeded, texts = receiving.recv()
    except EOFError:
        raise RuntimeError(f"a command ended with {process.exitcode}: {_log(commands)}") from None
    return Said(succeeded=succeeded, texts=texts)


def _run(command: Callable[[Commands], Any], commands: Commands, sending: Connection) -> None:
    with commands.path.with_suffix(".log").open("wb") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    os.environ.pop(VARIABLE, None)
    if commands.fault is not None:
        os.environ[VARIABLE] = commands.fault
    said = said_by(lambda: command(commands))
    sending.send((said.succeeded, said.texts))


def _log(commands: Commands) -> str:
    return commands.path.with_suffix(".log").read_text(errors="replace")[-2_000:]
