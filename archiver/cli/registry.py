"""`archiver registry`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError

registry_app = typer.Typer(help="The registry in Postgres.", no_args_is_help=True)


@registry_app.callback()
def root() -> None:
    """The registry in Postgres."""


@registry_app.command()
def rebuild(
    topics: Annotated[
        list[str] | None, typer.Argument(help="Topics. Default: all configured topics that have a table.")
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[
        list[str] | None, typer.Option(help="PARTITION=OFFSET: the first offset of a partition, for a single topic.")
    ] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Restore the registry from tables, journal and footers after its database was lost or set back.

    What the registry knows stays. Uploaded files that continue a table are staged; `archiver archive` commits them.
    """
    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.rebuild_screen import rebuild_screen
    from archiver.upkeep.rebuild.job import Rebuild

    with reported(as_json=as_json):
        rebuilt = Rebuild(load_config(config), topics or (), starts=_starts(start or ())).run()
    print_answer(
        "rebuilt", {"topics": [asdict(topic) for topic in rebuilt]}, lambda: rebuild_screen(rebuilt), as_json=as_json
    )


def _starts(texts: Sequence[str]) -> dict[int, int]:
    starts: dict[int, int] = {}
    for text in texts:
        partition, _, offset = text.partition("=")
        if not (partition.isdecimal() and offset.isdecimal()):
            raise ConfigError("--start is PARTITION=OFFSET, such as 3=1200", start=text)
        starts[int(partition)] = int(offset)
    return starts
