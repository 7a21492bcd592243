"""`archiver serve kafka` in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(config: Path, listen: str = "127.0.0.1:0") -> Iterator[str]:
    command = [sys.executable, "-m", "archiver", "serve", "kafka", "--listen", listen, "--json"]
    with subprocess.Popen([*command, "--config", str(config)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["advertise"]
        process.terminate()
        assert process.wait(20) == 128 + 15
