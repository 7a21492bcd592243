"""How errors reach the person at the terminal: one readable text and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from archiver.errors import ConfigError
from schema_mapping.errors import ContextError

FAILED = 1
MISCONFIGURED = 2


@contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """Print an expected error and leave with its exit code: 2 for configuration, 1 for all others.

    Unexpected errors keep their traceback.
    """
    try:
        yield
    except ContextError as error:
        print_error(error, as_json=as_json)
        raise typer.Exit(exit_code(error)) from error


def exit_code(error: ContextError) -> int:
    """Return 2 for configuration errors, 1 for all others."""
    return MISCONFIGURED if isinstance(error, ConfigError) else FAILED


def print_error(error: ContextError, *, as_json: bool) -> None:
    """Print `error` on standard error, as text or as one JSON object."""
    if as_json:
        context = {name: str(value) for name, value in error.context.items()}
        record = {"error": type(error).__name__, "message": error.message, "context": context}
        sys.stderr.write(json.dumps(record) + "\n")
        return
    text = Text.assemble((f"{type(error).__name__}: ", "bold red"), error.message)
    for name, value in error.context.items():
        text.append(f"\n  {name}: {value}", style="dim")
    Console(stderr=True, soft_wrap=True).print(text)
