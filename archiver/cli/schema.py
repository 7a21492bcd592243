"""`archiver schema`: shows a topic's columns and their history, and what a schema change would do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath
from archiver.observe.json_lines import error_json

if TYPE_CHECKING:
    from archiver.config import Config
    from archiver.errors import SchemaRegistryError
    from catalog.model import TopicRow
    from catalog.registry import Registry

schema_app = typer.Typer(help="The mapping of a topic's messages to columns, and its history.", no_args_is_help=True)

Topic = Annotated[str, typer.Argument(help="The topic, as Kafka names it.")]


@schema_app.command()
def show(topic: Topic, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Print the columns as a tree: id, type, Protobuf field, first version, and which are cut, with the reason."""
    from archiver.cli.schema_screen import outline_tree
    from schema_mapping.outline import outline

    with reported(as_json=as_json), _archived(config, topic) as (_, registry, row):
        found = outline(registry.ledger.load(row))
        if as_json:
            _print_json({"topic": topic, "table": row.table, **found.to_json()})
        else:
            Console(soft_wrap=True).print(outline_tree(topic, row.table, found))


@schema_app.command()
def history(topic: Topic, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Print every schema version: when it was first used and what it changed."""
    from archiver.cli.schema_screen import history_text

    with reported(as_json=as_json), _archived(config, topic) as (_, registry, row):
        records = registry.ledger.history(row)
        if not as_json:
            Console(soft_wrap=True).print(history_text(topic, records))
            return
        versions = [
            {
                "version": each.version,
                "created": each.created.isoformat(),
                "fingerprint": each.fingerprint,
                "changes": [change.to_json() for change in each.changes],
            }
            for each in records
        ]
        _print_json({"topic": topic, "table": row.table, "versions": versions})


@schema_app.command()
def diff(
    topic: Topic,
    descriptors: Annotated[
        Path | None,
        typer.Option("--descriptors", help="A descriptor set or .proto file (default: what the configuration names)."),
    ] = None,
    message: Annotated[str | None, typer.Option("--message", help="The message in it, where its name changes.")] = None,
    of_key: Annotated[bool, typer.Option("--key", help="The file describes the key, not the value.")] = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Print what would change in the table if a schema were deployed. Changes nothing."""
    from archiver.cli.schema_diff import Schemas, compare, proposed_schemas
    from archiver.cli.schema_screen import changes_lines
    from archiver.schemas.topic_schemas import TopicSchemas

    with reported(as_json=as_json), _archived(config, topic) as (loaded, registry, row):
        settings = loaded.topic(topic)
        state = registry.ledger.load(row)
        down: SchemaRegistryError | None = None
        if descriptors is None:
            today = TopicSchemas.read_or_recall(settings, loaded.schema_registry, known=row, registry=registry)
            proposed, down = Schemas(key=today.key, value=today.value), today.schema_registry_down
        else:
            proposed = proposed_schemas(settings, state, file=descriptors, message=message, of_key=of_key)
        found = compare(state, proposed, settings)
        if as_json:
            told = {"schema_registry_down": error_json(down)} if down else {}
            _print_json({"topic": topic, "table": row.table, **found.to_json(), **told})
            return
        console = Console(soft_wrap=True)
        if down is not None:
            console.print(f"[yellow]By the schemas last known[/]: {down}", highlight=False)
        console.print(f"{topic} in {row.table}: {found.summary}", highlight=False)
        console.print(
            *changes_lines(found.changes), *(f"  cut: {cut}" for cut in found.cuts), sep="\n", highlight=False
        )


@contextmanager
def _archived(path: Path, topic: str) -> Iterator[tuple[Config, Registry, TopicRow]]:
    """Open the registry with the topic's row. Raises NotArchived if there is no row, or it has no columns yet."""
    from archiver.config import load_config
    from archiver.upkeep.archived_topic import known_topics, not_archived
    from catalog.registry import Registry

    loaded = load_config(path)
    with Registry(loaded.registry.dsn, connections=1) as registry:
        (row,) = known_topics(loaded, (topic,), registry)
        if not registry.ledger.history(row):
            raise not_archived(topic, row.table)
        yield loaded, registry, row


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
