"""`archiver topics`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, print_error, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose


def topics(
    names: Annotated[list[str] | None, typer.Argument(help="Topics, or patterns with * and ?. Default: all.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List the cluster's topics with their partitions, records, configuration section and table.

    Topics that are configured or archived and that the cluster doesn't have are listed too. Changes nothing.
    """
    from archiver.config import load_config
    from archiver.setup.cluster_topics import list_topics
    from archiver.terminal.answer import print_answer
    from archiver.terminal.topics_screen import topics_json, topics_screen

    with reported(as_json=as_json):
        loaded = load_config(config)
        listing = list_topics(loaded, names or ())
    print_answer("topics", topics_json(listing), lambda: topics_screen(listing), as_json=as_json)
    if listing.registry_error is not None:
        print_error(listing.registry_error, as_json=as_json)
        raise typer.Exit(FAILED)
