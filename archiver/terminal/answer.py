"""A JSON line or a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import RenderableType

from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import write_line


def print_answer(
    event: str,
    values: Mapping[str, Any],
    screen: Callable[[], RenderableType],
    *,
    as_json: bool,
    soft_wrap: bool = False,
) -> None:
    """With `soft_wrap`, the terminal wraps long lines."""
    if as_json:
        write_line(event, **values)
    else:
        TextConsole().print(screen(), soft_wrap=soft_wrap)
