"""Error messages and exit codes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from archiver.cli.logs import is_verbose, logs_to_stderr
from archiver.errors import ConfigError
from archiver.terminal.console import TextConsole
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import error_json, write_line
from catalog.errors import RegistryMisnamed
from schema_mapping.errors import ContextError
from schema_mapping.secrets import without_secrets

FAILED = 1
MISCONFIGURED = 2
SIGNALLED = 128
"""A command that a signal ended leaves with this and the signal's number, as shells have it: 130 for Ctrl-C."""


@contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """Exit with 2 for a ConfigError, with 1 for other expected errors. Unexpected ones keep their traceback."""
    try:
        with logs_to_stderr(as_json=as_json):
            yield
    except ContextError as error:
        print_error(error, as_json=as_json)
        raise typer.Exit(exit_code(error)) from error


def exit_code(error: ContextError) -> int:
    return MISCONFIGURED if isinstance(error, ConfigError | RegistryMisnamed) else FAILED


def print_error(error: ContextError, *, as_json: bool) -> None:
    if as_json:
        write_line("error", out=sys.stderr, error=error_json(error))
        return
    if is_verbose():
        sys.stderr.write(without_secrets("".join(traceback.format_exception(error))))
    TextConsole(stderr=True).print(error_text(error))
