"""`archiver reconcile`: staged files into their tables, after the catalog was away."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from archiver.cli.failures import FAILED, print_error, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath


def reconcile(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; all archived ones where none is named.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Commit what was staged while the catalog was away, in order, and find out what became of commits in doubt.

    `archiver archive` does the same at its start; this needs no Kafka.
    """
    from archiver.config import load_config
    from archiver.upkeep.reconcile import reconcile as run

    with reported(as_json=as_json):
        done = run(load_config(config), topics or ())
    if as_json:
        typer.echo(json.dumps([_plain(each) for each in done], indent=2))
    else:
        for each in done:
            typer.echo(
                f"{each.topic} in {each.table}: {each.landed:,} ranges with {each.rows:,} records landed, "
                f"{each.waiting:,} wait"
            )
            if each.error is not None:
                print_error(each.error, as_json=False)
    if any(each.error for each in done):
        raise typer.Exit(FAILED)


def _plain(each: Any) -> dict[str, Any]:
    error = each.error and {"kind": type(each.error).__name__, "message": str(each.error)}
    return {name: getattr(each, name) for name in ("topic", "table", "landed", "rows", "waiting")} | {"error": error}
