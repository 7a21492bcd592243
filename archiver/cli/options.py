"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

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
"""Every command takes it as `_verbose`. `archiver.cli.logs` keeps the value."""


def _json_or_text(context: typer.Context, parameter: typer.CallbackParam, chosen: bool) -> bool:
    source = context.get_parameter_source(parameter.name or "")
    return is_json_set() if source is None or source.name == "DEFAULT" else chosen


def is_json_set() -> bool:
    """Raises BadParameter if ARCHIVER_OUTPUT names no format."""
    match os.environ.get(OUTPUT, ""):
        case "json":
            return True
        case "" | "text":
            return False
        case found:
            raise typer.BadParameter(f"{OUTPUT} is {found!r}: set it to text or json")


OUTPUT: Final = "ARCHIVER_OUTPUT"

AsJson = Annotated[
    bool,
    typer.Option(
        "--json/--no-json",
        help="Print JSON lines or text. Default: what ARCHIVER_OUTPUT names, else text.",
        callback=_json_or_text,
        show_default=False,
    ),
]

DEFAULT_CONFIG = Path("archiver.toml")


def seconds_of(option: str, text: str | None) -> float | None:
    """Raises ConfigError."""
    from archiver.config.quantities import parse_seconds

    if text is None:
        return None
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None


def bytes_of(option: str, text: str | None) -> int | None:
    """Raises ConfigError."""
    from archiver.config.quantities import parse_bytes

    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None
