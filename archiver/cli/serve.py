"""`archiver serve kafka` and `archiver serve flight`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from archiver.cli.error_output import MISCONFIGURED, SIGNALLED, reported
from archiver.cli.logs import is_verbose, set_verbose
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose

serve_app = typer.Typer(
    help="Serve archived records to Kafka clients, or take in rows from Flight clients.", no_args_is_help=True
)


@serve_app.callback()
def serve() -> None:
    """Serve archived records to Kafka clients, or take in rows from Flight clients."""


@serve_app.command()
def kafka(
    config: ConfigPath = DEFAULT_CONFIG,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on. Default: `serve.listen`.")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option("--advertise", metavar="HOST:PORT", help="Address for clients. Default: the listener's address."),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=256,
            help="Number of nodes on this machine, at consecutive ports.",
        ),
    ] = 1,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Serve archived topics to Kafka clients without Kafka. Ctrl-C stops it."""
    from archiver.serve.heap import share_one_allocator

    share_one_allocator()
    given = {"ARCHIVER__SERVE__LISTEN": listen, "ARCHIVER__SERVE__ADVERTISE": advertise}
    environment = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
    if processes == 1:
        _serve(config, environment, as_json=as_json)
    from archiver.config import load_config

    with reported(as_json=as_json):
        loaded = load_config(config, environment)
        from archiver.serve.processes import Processes, share

        shares = [{**environment, **share(loaded, number, processes)} for number in range(processes)]
        number = Processes(
            _one_of_several, processes, config, shares, as_json, is_verbose(), gives_up=MISCONFIGURED
        ).run()
    raise typer.Exit(-number if number < 0 else SIGNALLED + number)


def _one_of_several(
    number: int, config: Path, environments: Sequence[Mapping[str, str]], as_json: bool, verbose: bool
) -> None:
    from archiver.serve.heap import share_one_allocator

    set_verbose(verbose)
    share_one_allocator()
    try:
        _serve(config, environments[number], as_json=as_json)
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _serve(config: Path, environment: Mapping[str, str], *, as_json: bool) -> NoReturn:
    from archiver.config import load_config

    with reported(as_json=as_json):
        loaded = load_config(config, environment)
        # only now: configuration errors are reported first
        from archiver.serve.kafka.endpoint import Endpoint, Listening
        from archiver.serve.kafka.running import run_until_stopped
        from archiver.terminal.answer import print_answer

        endpoint = Endpoint(loaded)

        def ready(found: Listening) -> None:
            text = (
                f"Kafka clients read {found.topics} archived topics at {found.advertise} (node {found.node})."
                " Ctrl-C ends it."
            )
            print_answer("listening", asdict(found), lambda: text, as_json=as_json)

        number = run_until_stopped(endpoint, ready)
    raise typer.Exit(SIGNALLED + number)


@serve_app.command()
def flight(
    config: ConfigPath = DEFAULT_CONFIG,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on. Default: `flight.listen`."),
    ] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Take in rows from Arrow Flight clients. Ctrl-C writes them to the tables and stops it."""
    from archiver.config import load_config

    environment = {**os.environ, **({} if listen is None else {"ARCHIVER__FLIGHT__LISTEN": listen})}
    with reported(as_json=as_json):
        loaded = load_config(config, environment)
        # only now: configuration errors are reported first
        from archiver.flight.endpoint import FlightEndpoint, FlightListening
        from archiver.flight.running import run_until_stopped
        from archiver.terminal.answer import print_answer

        endpoint = FlightEndpoint(loaded)

        def ready(listening: FlightListening) -> None:
            text = f"Flight clients send rows of {listening.topics} topics to {listening.address}. Ctrl-C ends it."
            print_answer("listening", asdict(listening), lambda: text, as_json=as_json)

        number = run_until_stopped(endpoint, ready)
    raise typer.Exit(SIGNALLED + number)
