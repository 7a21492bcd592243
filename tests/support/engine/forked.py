"""Forked processes, fast to start and kill."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

TIMEOUT_S = 240.0
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    ["tests.fault.archive_process", "tests.fault.soak.job_process", "tests.fault.transfer_process"]
)


def run_forked(run: Callable[..., int], *arguments: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = FORKED.Process(target=_exit_with, args=(run, arguments, fault, output, errors))
        process.start()
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{arguments} did not end in {TIMEOUT_S:.0f} s:\n{errors.read_text()[-4_000:]}")
        return subprocess.CompletedProcess(arguments, process.exitcode, output.read_text(), errors.read_text())


@contextmanager
def forked(run: Callable[..., int], *arguments: str, folder: Path) -> Iterator[tuple[BaseProcess, Path]]:
    output = folder / "output"
    output.write_bytes(b"")
    process = FORKED.Process(target=_exit_with, args=(run, arguments, None, output, folder / "errors"))
    process.start()
    try:
        yield process, output
    finally:
        process.kill()
        process.join()


def _exit_with(
    run: Callable[..., int], arguments: tuple[str, ...], fault: str | None, output: Path, errors: Path
) -> None:
    for path, stream in ((output, sys.stdout), (errors, sys.stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.environ.pop("ARCHIVER_FAULT", None)
    if fault is not None:
        os.environ["ARCHIVER_FAULT"] = fault
    sys.exit(run(*arguments))
