"""`archiver init`: writes a first configuration from what the cluster has."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, Verbose, wants_json
from archiver.terminal.console import TextConsole


def init(
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", "-b", help="Brokers of the cluster: HOST:PORT,HOST:PORT.")
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    base: Annotated[
        Path | None, typer.Option("--from", help="Copy servers and settings, but no topics, from this configuration.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="SECTION.KEY=VALUE of the file, such as catalog.uri=http://…; env:NAME or file:PATH as a secret's"
            " value. May be given again.",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="Only topics with this name or pattern. Repeatable.")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, max=1_000, help="Number of records to sample from each topic.")
    ] = 20,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing configuration.")] = False,
    json: AsJsonElsewhere = None,
    _verbose: Verbose = False,
) -> None:
    """Write a configuration with a section for each topic of the cluster.

    Comments describe a sample of each topic's records. Archives nothing and changes nothing in the cluster.
    """
    from archiver.setup.write_config import FirstConfig, sections_from

    as_json = wants_json(json)
    with reported(as_json=as_json):
        sections = sections_from(base, bootstrap, settings or ())
        first = FirstConfig(path=config, sections=sections, topics=topic or (), samples=samples, may_replace=force)
        drafts = first.write()
    written = [each.size.topic for each in drafts if each.is_in_force]
    commented = [each.size.topic for each in drafts if not each.is_in_force]
    if as_json:
        report = {"config": str(config), "topics": written, "commented_out": commented}
        typer.echo(json_text.dumps(report, indent=2, ensure_ascii=False))
        return
    console = TextConsole()
    left = f", and {len(commented):,} more as comments" if commented else ""
    noun = "topic" if len(written) == 1 else "topics"
    console.print(Text(f"Wrote {config} with {len(written):,} {noun}{left}."))
    console.print(Text(f"Read it, then try it: archiver check --config {config}"))
