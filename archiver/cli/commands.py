"""The commands by purpose, as the help lists them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from typer.core import TyperGroup

PURPOSES: Final = {
    "Set up": ("demo", "init", "check", "topics", "local"),
    "Daily work": (
        "archive",
        "status",
        "compact",
        "reconcile",
        "reprocess",
        "refill",
        "repartition",
        "index",
        "registry",
    ),
    "Read": ("find", "replay", "files", "views", "schema"),
    "Evidence": ("verify", "audit", "journal", "hold", "metadata"),
    "Remove": ("expire", "erase", "abandon", "orphans"),
    "Serve": ("serve", "groups", "users"),
}
"""The commands by purpose, in the order of the help text."""

_UNCUT: Final = 10_000


class Commands(TyperGroup):
    """Help shows a command's first sentence in full."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self._write(ctx, formatter, "Commands", self.list_commands(ctx))

    def _write(self, ctx: Any, formatter: Any, title: str, names: Iterable[str]) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in names)
        rows = [
            (name, command.get_short_help_str(_UNCUT))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class CommandsByPurpose(Commands):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for purpose, names in PURPOSES.items():
            self._write(ctx, formatter, purpose, names)
