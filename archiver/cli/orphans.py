"""`archiver orphans`: files of ours that nothing refers to any more."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from archiver.cli.failures import FAILED, reported
from archiver.cli.json_lines import wants_json
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, seconds_of


def orphans(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; all archived ones where none is named.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Only files older than this (7d, 36h); by default [archive] orphan_grace."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them; otherwise they are only shown.")] = False,
    json: AsJsonElsewhere = None,
) -> None:
    """Find uploads and manifests that nothing refers to, left by kills and failed commits; with --delete, remove them.

    Never touches what a snapshot, branch or tag, the registry, the journal or a commit in doubt refers to, nor files of
    other writers. May run beside `archiver archive`.
    """
    from archiver.cli.orphans_view import BarObserver, print_report, write_report
    from archiver.config import load_config
    from archiver.upkeep.orphans import Orphans

    as_json = wants_json(json)
    with reported(as_json=as_json):
        console = Console(soft_wrap=True)
        seconds = seconds_of("--older-than", older_than)
        with BarObserver(console, is_silent=as_json) as observer:
            report = Orphans(load_config(config), topics or (), observer, older_than=seconds, deletes=delete).run()
    if as_json:
        write_report(report)
    else:
        print_report(console, report)
    if not report.succeeded:
        raise typer.Exit(FAILED)
