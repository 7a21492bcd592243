"""`archiver status`: shows how far topics are archived, and what holds them up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath

if TYPE_CHECKING:
    from archiver.config import TopicConfig
    from archiver.ingest.topic.status import StatusReader


def status(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; all configured ones where none is named.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Print how far topics are archived and how far they lag; exits with 1 if one can't go on. Archives nothing."""
    from archiver.cli.status_screen import status_json, status_table

    with reported(as_json=as_json), _reader(config, topics or []) as (reader, wanted):
        found = [reader.topic(each) for each in wanted]
    if as_json:
        typer.echo(json.dumps({"topics": [status_json(each) for each in found]}, indent=2, ensure_ascii=False))
    else:
        console = Console()
        for each in found:
            console.print(status_table(each))
    if any(each.problems for each in found):
        raise typer.Exit(FAILED)


@contextmanager
def _reader(path: Path, topics: list[str]) -> Iterator[tuple[StatusReader, tuple[TopicConfig, ...]]]:
    from archiver.config import load_config
    from archiver.ingest.topic.status import StatusReader
    from archiver.kafka.broker import BrokerClient
    from catalog.iceberg.table_catalog import TableCatalog
    from catalog.registry import Registry

    loaded = load_config(path)
    with BrokerClient(loaded.kafka) as brokers:
        wanted = loaded.select(() if topics else brokers.topics(), topics)
        with Registry(loaded.registry.dsn, connections=1) as registry, TableCatalog(loaded.catalog) as catalog:
            yield StatusReader(brokers=brokers, registry=registry, catalog=catalog), wanted
