"""`archiver registry`: the registry's own upkeep."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from archiver.cli.failures import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath

registry_app = typer.Typer(help="The registry in Postgres.", no_args_is_help=True)


@registry_app.callback()
def root() -> None:
    """The registry in Postgres."""


@registry_app.command()
def rebuild(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; all configured ones that have a table.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Bring the registry back from tables, journal and footers, after its database was lost or restored from long ago.

    What the registry knows stays. Uploaded files that continue a table are staged; `archiver archive` commits them.
    """
    from archiver.config import load_config
    from archiver.upkeep.rebuild import Rebuild

    with reported(as_json=as_json):
        rebuilt = Rebuild(load_config(config), topics or ()).run()
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in rebuilt], indent=2))
        return
    for each in rebuilt:
        source = "journal" if each.from_journal else "footers"
        typer.echo(
            f"{each.topic} in {each.table}: {each.schema_versions} schema versions and {each.ranges:,} ranges restored"
            f" (from the {source}), {each.staged} staged"
        )
    if not rebuilt:
        typer.echo("no topic of the configuration has a table")
