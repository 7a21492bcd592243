"""Stop a job by signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from archiver.engine.runner import Engine

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_POLL_SECONDS = 0.05
_ASKED, _OVER = b"s", b"o"


class StopSignal(threading.Event):
    number: int | None = None


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Yield an event that SIGTERM or SIGINT sets; a second signal ends the process.

    Restores earlier handlers. Main thread only.
    """
    stop = StopSignal()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    wakeup, tell = os.pipe()

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.number is not None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.number = number
        os.write(tell, _ASKED)

    def listen() -> None:
        while os.read(wakeup, 1) == _ASKED:
            stop.set()

    # A handler interrupts the main thread anywhere, also within `stop.wait`, whose lock `stop.set` would wait for.
    listener = threading.Thread(target=listen, name="signals", daemon=True)
    listener.start()
    for number in SIGNALS:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.write(tell, _OVER)
        listener.join()
        os.close(wakeup)
        os.close(tell)


@contextmanager
def interrupt_on(stop: threading.Event, engine: Engine) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            if stop.wait(_POLL_SECONDS):
                engine.interrupt()
                return

    thread = threading.Thread(target=watch, name="stop", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
