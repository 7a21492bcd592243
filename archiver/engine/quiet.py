"""A filter on the standard error of the Java process that Spark starts: drops what tells an operator nothing.

The process keeps the file descriptor it is born with, so the filter stands from its start to its end; everything but
the few known lines passes unchanged.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NOISE = (
    b"WARNING: Using incubator modules:",
    b"WARNING: package sun.security.action not in java.base",
    b"Using Spark's default log4j profile:",
    b"Setting default log level to",
    b"To adjust logging level use",
)


@contextmanager
def filtered_children() -> Iterator[None]:
    """Give child processes started inside a standard error without `NOISE`; our own is as before afterwards."""
    sys.stderr.flush()
    try:
        original = os.dup(2)
    except OSError:  # no standard error at all: nothing to keep clean
        yield
        return
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_forward, args=(reader, original), name="spark-stderr", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(original, 2)


def _forward(reader: int, target: int) -> None:
    with os.fdopen(reader, "rb") as lines, suppress(OSError):
        for line in lines:
            if not line.startswith(NOISE):
                os.write(target, line)
    os.close(target)
