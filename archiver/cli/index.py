"""`archiver index`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose

if TYPE_CHECKING:
    from archiver.index.builder import BuildReport
    from archiver.upkeep.indexing import TopicIndex

index_app = typer.Typer(help="The index of chosen columns, for `archiver find`.", no_args_is_help=True)

Topics = Annotated[list[str] | None, typer.Argument(help="Topics. Default: all archived topics with an index.")]
Topic = Annotated[str, typer.Argument(help="The topic.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="Only this entry of `index`, such as header:trace. Repeatable."),
]


@index_app.callback()
def root() -> None:
    """The index of chosen columns, for `archiver find`."""


@index_app.command()
def build(
    topics: Topics = None, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, _verbose: Verbose = False
) -> None:
    """Index the files that the index doesn't cover yet, old ones too, and merge its runs.

    `archiver archive --every` does this by itself in idle time. May be stopped at any moment, and run again.
    """
    _build(topics or (), config, lambda index: index.build(), as_json=as_json)


@index_app.command()
def rebuild(
    topics: Topics = None,
    config: ConfigPath = DEFAULT_CONFIG,
    columns: Columns = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Drop runs and build them again. Searches read the files until then. Repairs a damaged index."""
    _build(topics or (), config, lambda index: index.rebuild(columns or ()), as_json=as_json)


@index_app.command()
def drop(
    topic: Topic,
    config: ConfigPath = DEFAULT_CONFIG,
    columns: Columns = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Delete the runs of a topic's index. Take the columns out of `index` first, or they are built again.

    Searches find the same without them.
    """
    from rich.text import Text

    from archiver.config import load_config
    from archiver.terminal.amounts import counted
    from archiver.terminal.answer import print_answer
    from archiver.terminal.index_screen import failures_json, failures_text
    from archiver.upkeep.indexing import TopicIndex, indexed_topics
    from catalog.registry import Registry

    with reported(as_json=as_json):
        loaded = load_config(config)
        with Registry(loaded.registry.dsn) as registry:
            (row,) = indexed_topics(loaded, (topic,), registry)
            count, report = TopicIndex(loaded, row, registry).drop(columns or ())
    text = "\n".join((f"{topic}: {counted(count, 'run')} dropped", *failures_text(topic, report)))
    values = {"topic": topic, "runs": count, "failures": failures_json(report)}
    print_answer("index_dropped", values, lambda: Text(text), as_json=as_json, soft_wrap=True)
    if report.failures:
        raise typer.Exit(FAILED)


@index_app.command()
def status(
    topics: Topics = None, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, _verbose: Verbose = False
) -> None:
    """Show what the index of each column has, and how many data files it covers."""
    from rich.console import Group

    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.index_screen import status_json, status_screen
    from archiver.upkeep.indexing import TopicIndex, indexed_topics
    from catalog.registry import Registry

    with reported(as_json=as_json):
        loaded = load_config(config)
        with Registry(loaded.registry.dsn) as registry:
            rows = indexed_topics(loaded, topics or (), registry)
            indexes = [TopicIndex(loaded, row, registry).status() for row in rows]
    values = {"topics": [status_json(index) for index in indexes]}
    print_answer("index", values, lambda: Group(*map(status_screen, indexes)), as_json=as_json)


def _build(topics: Sequence[str], config: Path, work: Callable[[TopicIndex], BuildReport], *, as_json: bool) -> None:
    from rich.text import Text

    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.index_screen import build_json, build_lines
    from archiver.upkeep.indexing import TopicIndex, indexed_topics
    from catalog.registry import Registry

    has_failed = False
    with reported(as_json=as_json):
        loaded = load_config(config)
        with Registry(loaded.registry.dsn) as registry:
            for row in indexed_topics(loaded, topics, registry):
                report = work(TopicIndex(loaded, row, registry))
                has_failed |= bool(report.failures)
                text = "\n".join(build_lines(row.topic, report))
                values = build_json(row.topic, report)
                print_answer("index_built", values, lambda text=text: Text(text), as_json=as_json, soft_wrap=True)  # type: ignore[misc]
    if has_failed:
        raise typer.Exit(FAILED)
