"""How a group of commands is listed in its help."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

_UNCUT: Final = 10_000


class Commands(TyperGroup):
    """A group whose help shows each command's first sentence whole. Typer itself cuts it at the line's end."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(_UNCUT)) for name, each in known if each is not None and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
