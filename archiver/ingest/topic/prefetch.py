"""Read the state of many topics. A topic that fails here queries again when planned."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from archiver.errors import SourceError
from archiver.kafka.broker import BrokerClient
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.inspection import ArchivedOffsets
from archiver.topics.log_bounds import LogBounds
from catalog.iceberg.table_catalog import TableCatalog
from schema_mapping.errors import ContextError

Topic = TypeVar("Topic")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetched:
    """`bounds` are None if a leader didn't answer."""

    archived: ArchivedOffsets | ContextError
    bounds: LogBounds | None = None


class Plannable(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def given_up(self) -> tuple[int, ...]: ...

    def archived_offsets(self, catalog: TableCatalog) -> ArchivedOffsets: ...


Run = TypeVar("Run", bound=Plannable)


def prefetch(
    runs: Sequence[Run], *, catalogs: CatalogPool, brokers: BrokerClient, stop: threading.Event
) -> dict[Run, Prefetched]:
    """Read log ends last: else a log may seem shorter than another process's archive."""
    archived: dict[Run, ArchivedOffsets | ContextError] = {}
    for run, answer in catalogs.each(runs, lambda run, catalog: run.archived_offsets(catalog), stop):
        try:
            archived[run] = answer.result()
        except ContextError as error:
            archived[run] = error
    bounds = _bounds(
        {run: offsets for run, offsets in archived.items() if isinstance(offsets, ArchivedOffsets)}, brokers
    )
    return {run: Prefetched(archived=offsets, bounds=bounds.get(run.name)) for run, offsets in archived.items()}


def _bounds(archived: Mapping[Run, ArchivedOffsets], brokers: BrokerClient) -> dict[str, LogBounds]:
    partitions: dict[str, list[int]] = {}
    with suppress(SourceError):  # the first topic that asks by itself says so
        brokers.refresh([run.name for run in archived])
    for run in archived:
        with suppress(SourceError):
            described = brokers.described(run.name).partitions
            partitions[run.name] = sorted(described.keys() - set(run.given_up))
    return LogBounds.ask_at_once(partitions, {run.name: offsets.known for run, offsets in archived.items()}, brokers)
