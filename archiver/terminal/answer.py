"""The one answer of a command: a JSON document for machines, a screen for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import typer
from rich.console import RenderableType

from archiver.terminal.console import TextConsole


def print_answer(
    document: Any, screen: Callable[[], RenderableType], *, as_json: bool, soft_wrap: bool = False
) -> None:
    """Print the document as JSON, or the screen. With `soft_wrap`, lines stay whole on a narrow terminal."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        TextConsole().print(screen(), soft_wrap=soft_wrap)
