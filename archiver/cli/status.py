"""`archiver status`."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from archiver.cli.error_output import FAILED, SIGNALLED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import ConfigError, SourceError
from archiver.light_start import quick_imports, without_pandas
from archiver.terminal.console import TextConsole

if TYPE_CHECKING:
    from archiver.config import Config, TopicConfig
    from archiver.topics.state import TopicStatus
    from schema_mapping.errors import ContextError

Look = Callable[[], tuple[list["TopicStatus"], "ContextError | None"]]
"""Returns topics, and the error of Kafka if it doesn't answer: then they are what is archived."""

WATCH_SECONDS = 5.0


def status(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all configured topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    partitions: Annotated[
        bool, typer.Option("--partitions", "-p", help="Print every partition instead of a line per topic.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[str | None, typer.Option("--every", help="With --watch: the interval. Default: 5s.")] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print progress, lag and problems of topics. Exits with 1 if a topic cannot continue. Archives nothing."""
    with quick_imports():
        from archiver.terminal.answer import print_answer
        from archiver.terminal.json_lines import error_or_none
        from archiver.terminal.status_screen import looked_screen, status_json

    with without_pandas(), reported(as_json=as_json):
        seconds = seconds_of("--every", every)
        if seconds is not None and not watch:
            raise ConfigError("--every goes with --watch")
        with _reader(config, topics or []) as look:
            if watch:
                number = _watch(look, seconds or WATCH_SECONDS, as_json=as_json, partitions=partitions)
                raise typer.Exit(SIGNALLED + number)
            listed, error = look()
    values = {"topics": [status_json(topic) for topic in listed], "error": error_or_none(error)}
    print_answer("status", values, lambda: looked_screen(listed, error, partitions=partitions), as_json=as_json)
    if error is not None or any(topic.problems for topic in listed):
        raise typer.Exit(FAILED)


def _watch(look: Look, seconds: float, *, as_json: bool, partitions: bool) -> int:
    """Return the signal's number."""
    from rich.live import Live

    from archiver.ingest.stopping import stop_on_signals

    console = TextConsole()
    with stop_on_signals() as stop:
        if as_json or not console.is_terminal:
            while not stop.is_set():
                _show_once(look, console, as_json=as_json, partitions=partitions)
                stop.wait(seconds)
            return stop.number or signal.SIGINT
        shown: RenderableType = ""
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            while not stop.is_set():
                shown = _looked(look, partitions=partitions)
                live.update(shown, refresh=True)
                stop.wait(seconds)
        console.print(shown)
    return stop.number or signal.SIGINT


def _show_once(look: Look, console: TextConsole, *, as_json: bool, partitions: bool) -> None:
    from archiver.terminal.json_lines import error_or_none, write_line
    from archiver.terminal.status_screen import status_json

    if not as_json:
        console.print(_looked(look, partitions=partitions))
        return
    statuses, error = _try(look)
    write_line("status", topics=[status_json(topic) for topic in statuses], error=error_or_none(error))


def _looked(look: Look, *, partitions: bool) -> RenderableType:
    from archiver.terminal.status_screen import watch_screen

    statuses, error = _try(look)
    return watch_screen(statuses, error, partitions=partitions)


def _try(look: Look) -> tuple[list[TopicStatus], ContextError | None]:
    """A retryable error is returned."""
    from schema_mapping.errors import ContextError

    try:
        return look()
    except ContextError as error:
        if not error.retryable:
            raise
        return [], error


@contextmanager
def _reader(path: Path, topics: Sequence[str]) -> Iterator[Look]:
    with quick_imports():
        from archiver.config import load_config
        from archiver.kafka.broker import BrokerClient
        from archiver.topics.archived_state import ArchivedState
        from archiver.topics.catalog_pool import CatalogPool
        from archiver.topics.filled_state import FilledState
        from archiver.topics.state_reader import StatusReader
        from catalog.iceberg.table_catalog import TableCatalog
        from catalog.registry import Registry

    loaded = load_config(path)
    most = loaded.archive.catalog_connections
    with (
        ExitStack() as closing,
        Registry(loaded.registry.dsn, connections=most + 1) as registry,
        CatalogPool(lambda: TableCatalog(loaded.catalog, late_io=True), most=most) as catalogs,
    ):
        brokers = closing.enter_context(BrokerClient(loaded.kafka)) if loaded.has_kafka else None
        reads_kafka = not topics or any(loaded.topic(name).source == "kafka" for name in topics)

        def look() -> tuple[list[TopicStatus], ContextError | None]:
            error: ContextError | None = None
            statuses: list[TopicStatus] = []
            existing: tuple[str, ...] = ()
            try:
                if reads_kafka and brokers is not None:
                    reader = StatusReader(brokers=brokers, registry=registry, catalogs=catalogs)
                    existing = () if topics else brokers.topics()
                    statuses = reader.topics(_of_source(loaded, existing, topics, "kafka"))
            except SourceError as failed:
                error = failed
                archived = ArchivedState(registry=registry, catalogs=catalogs)
                existing = () if topics else archived.names()
                statuses = archived.topics(_of_source(loaded, existing, topics, "kafka"))
            filled = _of_source(loaded, existing, topics, "flight")
            if filled:
                statuses += FilledState(registry=registry, catalogs=catalogs).topics(filled)
            return sorted(statuses, key=_by_name) if filled and not topics else statuses, error

        yield look


def _of_source(config: Config, existing: Iterable[str], topics: Sequence[str], source: str) -> list[TopicConfig]:
    return [topic for topic in config.select(existing, topics) if topic.source == source]


def _by_name(status: TopicStatus) -> str:
    return status.topic
