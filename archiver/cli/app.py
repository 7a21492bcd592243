"""The whole `archiver` command, for embedding."""

from __future__ import annotations

from archiver.cli.command_line import command_line

app = command_line()
