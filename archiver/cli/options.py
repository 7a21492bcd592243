"""Options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.logs import set_verbose
from archiver.errors import ConfigError

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="ARCHIVER_CONFIG", help="The configuration file.", show_default=True),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Also log warnings of libraries and tracebacks of errors.",
        callback=set_verbose,
        is_eager=True,
        expose_value=False,
    ),
]
"""Every command takes it as `_verbose`. Whoever writes warnings and errors asks `archiver.cli.logs` for it."""


def _json_elsewhere(context: typer.Context, parameter: typer.CallbackParam, chosen: bool) -> bool:
    """What the option says, else whether standard output is no terminal."""
    source = context.get_parameter_source(parameter.name or "")
    return wants_json(None if source is None or source.name == "DEFAULT" else chosen)


AsJson = Annotated[
    bool,
    typer.Option(
        "--json/--no-json",
        help="Print JSON or text. Default: text on a terminal, JSON otherwise.",
        callback=_json_elsewhere,
        show_default=False,
    ),
]
"""For commands that answer with one JSON document."""

AsJsonElsewhere = Annotated[
    bool | None,
    typer.Option(
        "--json/--no-json", help="Print JSON lines or text. Default: text on a terminal, JSON lines otherwise."
    ),
]
"""For jobs, whose JSON is a line for each event."""

DEFAULT_CONFIG = Path("archiver.toml")


def wants_json(chosen: bool | None) -> bool:
    """Whether output is for a machine: as `--json/--no-json` says, else whenever it doesn't go to a terminal."""
    return not sys.stdout.isatty() if chosen is None else chosen


def seconds_of(option: str, text: str | None) -> float | None:
    """Parse an option's duration into seconds. Raises ConfigError if it is none."""
    from archiver.config.quantities import parse_seconds

    if text is None:
        return None
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None


def bytes_of(option: str, text: str | None) -> int | None:
    """Parse an option's size into bytes. Raises ConfigError if it is none."""
    from archiver.config.quantities import parse_bytes

    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None
