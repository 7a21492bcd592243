"""Imports only the named commands, to start fast."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Final

import typer

from archiver.cli.commands import PURPOSES, Commands, CommandsByPurpose

GROUPS: Final = frozenset(
    {"serve", "groups", "users", "schema", "audit", "index", "journal", "registry", "local", "metadata"}
)
"""Each is a `NAME_app` with commands of its own, in a module of its name in this package.

Each of the remaining commands is a function in a module of its name.
"""

NAMES: Final = tuple(name for names in PURPOSES.values() for name in names)


def command_line(names: Iterable[str] = NAMES) -> typer.Typer:
    app = typer.Typer(
        cls=CommandsByPurpose,
        help="Kafka topics as Iceberg tables, and the same files as Kafka records again.",
        no_args_is_help=True,
        rich_markup_mode=None,  # markup would take brackets out of help texts, and its frames cut words at 50 columns
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        pretty_exceptions_show_locals=False,
    )
    app.callback()(root)
    for name in names:
        module = import_module(f"archiver.cli.{name}")
        if name in GROUPS:
            app.add_typer(getattr(module, f"{name}_app"), name=name, cls=Commands)
        else:
            app.command()(getattr(module, name))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from archiver.cli.versions import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit


def root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of the archiver and its parts.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Kafka topics as Iceberg tables, and the same files as Kafka records again."""
