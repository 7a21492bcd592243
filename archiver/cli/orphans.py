"""`archiver orphans`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of


def orphans(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all archived topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Only files older than this (7d, 36h). Default: [archive] orphan_grace."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the files.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List uploads and manifests that nothing refers to. --delete removes them.

    Never touches files of other writers, nor anything that a snapshot, branch or tag, the registry, the journal or a
    commit in doubt refers to. May run at the same time as `archiver archive`. --delete asks before it deletes; without
    a terminal it needs --yes.
    """
    from archiver.cli.consent import consent_to
    from archiver.config import load_config
    from archiver.terminal.console import Terminal
    from archiver.terminal.orphans_screen import OrphansScreen
    from archiver.terminal.output import Output
    from archiver.upkeep.consent import GIVEN
    from archiver.upkeep.orphans.job import Orphans

    with reported(as_json=as_json):
        seconds = seconds_of("--older-than", older_than)
        loaded = load_config(config)
        consent = consent_to("orphans --delete", yes=yes) if delete else GIVEN
        output = Output(OrphansScreen(Terminal()), as_json=as_json)
        with output:
            job = Orphans(loaded, topics or (), output, older_than=seconds, deletes=delete, consent=consent)
            report = job.run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
