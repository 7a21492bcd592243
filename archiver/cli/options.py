"""Options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from archiver.errors import ConfigError

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="ARCHIVER_CONFIG", help="The configuration file.", show_default=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for machines instead of text for people.")]

AsJsonElsewhere = Annotated[
    bool | None,
    typer.Option(
        "--json/--no-json", help="JSON lines or text; without either text on a terminal, JSON lines elsewhere."
    ),
]

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
