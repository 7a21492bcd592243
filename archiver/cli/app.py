"""The `archiver` command with all its sub-commands, for whoever calls them in a process that does other things, too."""

from __future__ import annotations

from archiver.cli.command_line import command_line

app = command_line()
