"""`archiver demo`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import Verbose
from archiver.terminal.console import TextConsole


def demo(
    directory: Annotated[
        Path | None, typer.Option("--dir", "-D", help="An empty folder for the stack. Default: a temporary one.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the stack running and print how to connect to it.")
    ] = False,
    _verbose: Verbose = False,
) -> None:
    """Send a year of real flights from Kafka to Iceberg to Spark SQL and back, and compare every byte."""
    from archiver.demo.run import Demo, check_folder
    from archiver.demo.screen import show_endpoints

    console = TextConsole()
    with reported():
        if directory is not None:
            check_folder(directory)
        with _stack_folder(directory, keep=keep, console=console) as folder:
            endpoints = Demo(folder, console).run()
            if keep:
                show_endpoints(console, endpoints)


@contextmanager
def _stack_folder(directory: Path | None, *, keep: bool, console: TextConsole) -> Iterator[Path]:
    """A failed demo stops the stack and keeps the folder."""
    from archiver.local import LocalStack

    folder = directory or Path(tempfile.mkdtemp(prefix="archiver-demo-"))
    try:
        yield folder
    except BaseException:
        LocalStack(folder).down()
        console.print(f"The demo failed; the logs of its servers are in {folder / 'logs'}", style="red", soft_wrap=True)
        raise
    if keep:
        return
    LocalStack(folder).down()
    if directory is None:
        shutil.rmtree(folder, ignore_errors=True)
