"""`archiver init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.terminal.amounts import counted
from archiver.terminal.answer import print_answer


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
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Write a configuration with a section for each topic of the cluster.

    Comments describe a sample of each topic's records. Archives nothing and changes nothing in the cluster.
    """
    from archiver.setup.write_config import FirstConfig, sections_from

    with reported(as_json=as_json):
        sections = sections_from(base, bootstrap, settings or ())
        first = FirstConfig(path=config, sections=sections, topics=topic or (), samples=samples, may_replace=force)
        drafts = first.write()
    written = [draft.size.topic for draft in drafts if draft.is_in_force]
    commented = [draft.size.topic for draft in drafts if not draft.is_in_force]
    left = f", and {len(commented):,} more as comments" if commented else ""
    text = (
        f"Wrote {config} with {counted(len(written), 'topic')}{left}.\n"
        f"Read it, then try it: archiver check --config {config}"
    )
    values = {"config": str(config), "topics": written, "commented_out": commented}
    print_answer("configuration_written", values, lambda: text, as_json=as_json)
