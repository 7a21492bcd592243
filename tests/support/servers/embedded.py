"""An embedded stack, stopped even if the tests are killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archiver.local import LocalStack

_GUARD = """
import os, sys
sys.stdin.read()
if os.path.exists(sys.argv[1]):
    from archiver.local import LocalStack
    LocalStack(sys.argv[1]).down()
"""


@contextmanager
def embedded(folder: Path, *, ends_here: bool = True) -> Iterator[LocalStack]:
    local = LocalStack(folder)
    if not ends_here:
        yield local
        return
    with _guard(folder):
        try:
            yield local
        finally:
            local.down()


@contextmanager
def _guard(folder: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _GUARD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield
