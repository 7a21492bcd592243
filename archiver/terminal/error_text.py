"""An error as text: name, message, then context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from schema_mapping.errors import ContextError


def error_text(error: ContextError) -> Text:
    text = Text.assemble((f"{type(error).__name__}: ", "bold red"), error.message)
    for name, value in error.context.items():
        for line in _context_lines(name.replace("_", " "), value):
            text.append(f"\n  {line}", style="dim")
    return text


def _context_lines(name: str, value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            yield f"{name}:"
            for key, item in value.items():
                yield f"  {key}: {item}"
        case set() | frozenset():
            yield f"{name}: {', '.join(sorted(map(str, value)))}"
        case list() | tuple():
            yield f"{name}: {', '.join(map(str, value))}"
        case _:
            yield f"{name}: {value}"
