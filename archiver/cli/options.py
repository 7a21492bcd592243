"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="ARCHIVER_CONFIG", help="The configuration file.", show_default=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for machines instead of text for people.")]

DEFAULT_CONFIG = Path("archiver.toml")
