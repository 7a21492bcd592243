"""`archiver serve kafka`: Kafka clients read the archive."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import SIGNALLED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, Verbose, wants_json

serve_app = typer.Typer(help="Serve archived records to clients that know nothing of tables.", no_args_is_help=True)


@serve_app.callback()
def serve() -> None:
    """Serve archived records to clients that know nothing of tables."""


@serve_app.command()
def kafka(
    config: ConfigPath = DEFAULT_CONFIG,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Listen here; default: `serve.listen`.")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option("--advertise", metavar="HOST:PORT", help="Where clients connect to; default: where it listens."),
    ] = None,
    json: AsJsonElsewhere = None,
    _verbose: Verbose = False,
) -> None:
    """Serve archived topics to Kafka clients, as a broker would, without Kafka. Ctrl-C ends it."""
    from archiver.config import load_config

    as_json = wants_json(json)
    with reported(as_json=as_json):
        loaded = load_config(config)
        # only now: a mistake in the configuration is told at once
        from archiver.observe.console import TextConsole
        from archiver.serve.kafka.endpoint import Endpoint, Listening
        from archiver.serve.kafka.running import run_until_stopped

        endpoint = Endpoint(loaded, listen=listen, advertise=advertise)

        def ready(found: Listening) -> None:
            if as_json:
                typer.echo(found.line())
            else:
                TextConsole().print(
                    f"Kafka clients read {found.topics} archived topics at {found.advertise}. Ctrl-C ends it."
                )

        number = run_until_stopped(endpoint, ready)
    raise typer.Exit(SIGNALLED + number)
