"""What a wave's plan needs to know of many topics, asked together: tables a few at once, brokers once for all topics.

A topic that brokers can't be asked about so asks by itself when it is planned: what is wrong with it stays its own.
"""

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
    """What was asked for a topic's plan together with that of others: how far it is archived, or why that isn't known.

    `bounds` were asked after that, of all partitions that were to be looked at; None where a leader didn't answer.
    """

    archived: ArchivedOffsets | ContextError
    bounds: LogBounds | None = None


class Plannable(Protocol):
    """What is asked for here of a topic's run; see `TopicRun`."""

    @property
    def name(self) -> str:
        """The topic's name."""

    @property
    def given_up(self) -> tuple[int, ...]:
        """The partitions that aren't looked at any more."""

    def archived_offsets(self, catalog: TableCatalog) -> ArchivedOffsets:
        """How far the topic is archived."""


Run = TypeVar("Run", bound=Plannable)


def prefetch(
    runs: Sequence[Run], *, catalogs: CatalogPool, brokers: BrokerClient, stop: threading.Event
) -> dict[Run, Prefetched]:
    """What is known of the runs' topics for their plans: first where the archive stands, then of the logs.

    In this order: a log that is asked first may seem to end before what others archive of it meanwhile.
    """
    archived: dict[Run, ArchivedOffsets | ContextError] = {}
    for run, answer in catalogs.each(runs, lambda run, catalog: run.archived_offsets(catalog), stop):
        try:
            archived[run] = answer.result()
        except ContextError as error:
            archived[run] = error
    bounds = _bounds({run: found for run, found in archived.items() if isinstance(found, ArchivedOffsets)}, brokers)
    return {run: Prefetched(archived=found, bounds=bounds.get(run.name)) for run, found in archived.items()}


def _bounds(archived: Mapping[Run, ArchivedOffsets], brokers: BrokerClient) -> dict[str, LogBounds]:
    wanted: dict[str, list[int]] = {}
    with suppress(SourceError):  # the first topic that asks by itself says so
        brokers.refresh([run.name for run in archived])
    for run in archived:
        with suppress(SourceError):
            described = brokers.described(run.name).partitions
            wanted[run.name] = sorted(described.keys() - set(run.given_up))
    return LogBounds.ask_at_once(wanted, {run.name: found.known for run, found in archived.items()}, brokers)
