"""The `archiver` command: puts all sub-commands together."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from archiver.cli.archive import archive
from archiver.cli.audit import audit_app
from archiver.cli.check import check
from archiver.cli.commands import Commands
from archiver.cli.compact import compact
from archiver.cli.demo import demo
from archiver.cli.erase import erase
from archiver.cli.error_output import exit_code, print_error
from archiver.cli.expire import expire
from archiver.cli.groups import groups_app
from archiver.cli.hold import hold
from archiver.cli.init import init
from archiver.cli.journal import journal_app
from archiver.cli.local import local_app
from archiver.cli.orphans import orphans
from archiver.cli.reconcile import reconcile
from archiver.cli.refill import refill
from archiver.cli.registry import registry_app
from archiver.cli.repartition import repartition
from archiver.cli.replay import replay
from archiver.cli.reprocess import reprocess
from archiver.cli.schema import schema_app
from archiver.cli.serve import serve_app
from archiver.cli.status import status
from archiver.cli.topics import topics
from archiver.cli.users import users_app
from archiver.cli.verify import verify
from archiver.cli.versions import version_lines
from archiver.cli.views import views
from schema_mapping.errors import ContextError

app = typer.Typer(
    cls=Commands,
    help="Kafka topics as Iceberg tables, and the same files as Kafka records again.",
    no_args_is_help=True,
    rich_markup_mode=None,  # markup would take brackets out of help texts, and its frames cut words at 50 columns
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_show_locals=False,
)
app.command()(demo)
app.command()(init)
app.command()(check)
app.command()(topics)
app.command()(archive)
app.command()(replay)
app.command()(reprocess)
app.command()(reconcile)
app.command()(refill)
app.command()(expire)
app.command()(hold)
app.command()(erase)
app.command()(repartition)
app.command()(orphans)
app.command()(compact)
app.command()(status)
app.command()(verify)
app.command()(views)
app.add_typer(serve_app, name="serve", cls=Commands)
app.add_typer(groups_app, name="groups", cls=Commands)
app.add_typer(users_app, name="users", cls=Commands)
app.add_typer(schema_app, name="schema", cls=Commands)
app.add_typer(audit_app, name="audit", cls=Commands)
app.add_typer(journal_app, name="journal", cls=Commands)
app.add_typer(registry_app, name="registry", cls=Commands)
app.add_typer(local_app, name="local", cls=Commands)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of the archiver and its parts, and leave.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Kafka topics as Iceberg tables, and the same files as Kafka records again."""


def main() -> None:
    """Run the command line. Expected errors are printed for people and set the exit code."""
    try:
        app()
    except ContextError as error:
        print_error(error, as_json=False)
        sys.exit(exit_code(error))
