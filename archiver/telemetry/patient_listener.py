"""Waits for the address: commands may share a configuration."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from typing import Final, Self

from archiver.errors import ConfigError
from archiver.telemetry.listener import Listener

AGAIN_SECONDS: Final = 10.0
"""How long it pauses before it tries a taken address again."""

_LOG = logging.getLogger(__name__)


class PatientListener:
    """If another process has the address, it warns once and retries. Raises ConfigError for another reason."""

    def __init__(self, opens: Callable[[], Listener], *, address: str, again: float = AGAIN_SECONDS) -> None:
        self._opens = opens
        self._address = address
        self._again = again
        self._over = threading.Event()
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self._opened():
            _LOG.warning(
                "[metrics] listen: %s is taken, perhaps by another archiver with this configuration. This one works"
                " without metrics and health, and takes the address once it is free",
                self._address,
            )
            self._thread = threading.Thread(target=self._wait, name="metrics-address", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._listener is not None:
            self._listener.__exit__()

    def _opened(self) -> bool:
        try:
            self._listener = self._opens().__enter__()
        except ConfigError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE:
                return False
            raise
        return True

    def _wait(self) -> None:
        while not self._over.wait(self._again):
            try:
                if self._opened():
                    return
            except ConfigError as error:
                _LOG.warning("[metrics] listen: %s", error)
                return
