"""`archiver local`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import AsJson, Verbose
from archiver.terminal.answer import print_answer
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import write_line

if TYPE_CHECKING:
    from archiver.local import StackStatus

local_app = typer.Typer(
    help="The embedded stack: Postgres, Kafka, S3 and an Iceberg catalog on this machine.", no_args_is_help=True
)

NOT_READY = 1

Directory = Annotated[Path, typer.Option("--dir", "-D", help="The stack's folder: data, logs, settings.")]


@local_app.command()
def up(
    directory: Directory,
    as_json: AsJson = False,
    brokers: Annotated[
        int | None, typer.Option("--brokers", help="Kafka nodes of a new stack: 1 (the default) or 3.")
    ] = None,
    _verbose: Verbose = False,
) -> None:
    """Start what isn't running and write DIR/archiver.toml. The servers keep running after this command."""
    from archiver.local import LocalStack
    from archiver.local.screen import endpoints_table, followed

    stack = LocalStack(directory)
    with reported(as_json=as_json), followed(TextConsole(stderr=True)) as progress:
        done = stack.ensure(progress, brokers=brokers)
    if as_json:
        write_line("stack_up", started=list(done.started), endpoints=done.endpoints.public())
        return
    console = TextConsole()
    console.print("The stack is up." if done.started else "The stack was up already.")
    console.print(endpoints_table(done.endpoints))


@local_app.command()
def fetch(as_json: AsJson = False, _verbose: Verbose = False) -> None:
    """Fetch the jars of Kafka and Iceberg from Maven Central into the cache, for `up` and `archiver demo`."""
    from archiver.local.fetch import fetch_all

    with reported(as_json=as_json):
        folders = fetch_all(lambda line: typer.echo(line, err=True))
    values = {"folders": [str(folder) for folder in folders]}
    print_answer("jars_fetched", values, lambda: "All jars are there.", as_json=as_json)


@local_app.command()
def down(
    directory: Directory,
    parts: Annotated[
        list[str] | None, typer.Argument(help="Only these parts, by their names in `status --json`.")
    ] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Stop the servers. The data stays, and `up` starts from it."""
    from archiver.local import LocalStack
    from archiver.local.screen import followed

    with reported(as_json=as_json), followed(TextConsole(stderr=True)) as progress:
        stopped = LocalStack(directory).down(progress, only=parts or ())
    done = f"Stopped {', '.join(stopped)}." if parts else "The stack is down."
    text = done if stopped else "Nothing was running."
    print_answer("stack_down", {"stopped": list(stopped)}, lambda: text, as_json=as_json)


@local_app.command()
def status(
    directory: Directory,
    as_json: AsJson = False,
    secrets: Annotated[bool, typer.Option("--secrets", help="Also print passwords and keys.")] = False,
    _verbose: Verbose = False,
) -> None:
    """Show every server and endpoint. The exit code is 0 only if all are ready."""
    from archiver.local import LocalStack

    with reported(as_json=as_json):
        stack = LocalStack(directory).status()
    if as_json:
        write_line("stack_status", **stack.to_json(with_secrets=secrets))
    else:
        _show(stack, secrets=secrets)
    if not stack.ready:
        raise typer.Exit(NOT_READY)


def _show(found: StackStatus, *, secrets: bool) -> None:
    from archiver.local.screen import endpoints_table, parts_listing

    console = TextConsole()
    if not found.parts:
        console.print(
            f"There is no stack in {found.directory}. Start one with: archiver local up --dir {found.directory}"
        )
        return
    console.print(parts_listing(found))
    if found.endpoints is not None:
        console.print(endpoints_table(found.endpoints, secrets=secrets))
