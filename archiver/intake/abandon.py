"""`archiver abandon`: give up a topic's write-ahead log, and let another one begin.

First the registry stores the decision and fences the log, so that no server takes it. Then readable rows are
written to the table, and the rest is recorded as lost. A repeated command continues with the first decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from archiver.config import Config, TopicConfig
from archiver.errors import ConfigError, IntakeError, NotArchived, TopicBusy
from archiver.intake.decided_losses import DecidedLosses
from archiver.intake.disk import Disk, LocalDisk
from archiver.intake.files_turn import rows_to_write
from archiver.intake.losses import PartitionLosses, losses
from archiver.intake.salvage import Salvage, find_salvage, salvaged_batches
from archiver.intake.segments import LogId
from archiver.intake.state import IntakeState, covered_state
from archiver.intake.topic_table import TopicTable
from archiver.topics.filled_state import FLIGHT_CLUSTER
from archiver.topics.opening import TopicServers
from archiver.topics.written_log import SILENT_SECONDS
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange
from catalog.registry.intake_logs import IntakeLogRow

SKIPPED: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedLog:
    """`clients` have each client's next batch id. `in_folder` if this machine has the log."""

    topic: str
    table: str
    log: IntakeLogRow
    partitions: tuple[PartitionLosses, ...]
    clients: Mapping[str, int]
    in_folder: bool
    unreadable: Mapping[str, str]
    dry_run: bool

    @property
    def lost_offsets(self) -> int:
        return sum(len(offsets) for partition in self.partitions for offsets in partition.lost)

    @property
    def saved_rows(self) -> int:
        return sum(len(offsets) for partition in self.partitions for offsets in partition.saved)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonOptions:
    """`until` are next offsets that clients know. `skip` offsets are not given again."""

    until: Mapping[int, int]
    skip: int = SKIPPED
    dry_run: bool = False


class AbandonLog:
    def __init__(
        self,
        config: Config,
        topic: TopicConfig,
        servers: TopicServers,
        *,
        options: AbandonOptions,
        agrees: Callable[[AbandonedLog], bool],
        table: TopicTable | None = None,
    ) -> None:
        """`agrees` sees the losses. Raises ConfigError."""
        if topic.source != "flight":
            raise ConfigError('only topics with source = "flight" have a write-ahead log', topic=topic.name)
        unknown = sorted(set(options.until) - set(range(topic.partitions or 0)))
        if unknown:
            raise ConfigError(
                f"the topic has the partitions 0 to {(topic.partitions or 0) - 1}", option="--until", partition=unknown
            )
        self._config = config
        self._topic = topic
        self._registry = servers.registry
        self._options = options
        self._agrees = agrees
        self._table = table or TopicTable(config, topic, servers)

    def run(self) -> AbandonedLog:
        """Raises IntakeError if there is nothing to give up, TopicBusy beside a server, else ContextError."""
        row, log = self._registered()
        with self._folder(log) as disk, self._table.leased(row):
            _, ends = self._table.register()
            if not self._options.dry_run:
                ends = self._table.begin()
            salvage = self._salvage(row, log, ends, disk)
            report = self._report(row, log, ends, salvage, in_folder=disk is not None)
            if self._options.dry_run:
                return report
            if not self._agrees(report):
                return replace(report, dry_run=True)
            state = self._fence(row, log, DecidedLosses.of(salvage.state, report.partitions))
            self._write(report, disk, log.wal_id)
            epoch = log.epoch if log.is_given_up else log.epoch + 1
            if not self._registry.intake.drain(row, wal_id=log.wal_id, epoch=epoch, state=state.to_json()):
                raise TopicBusy("another process has given up the log since", topic=self._topic.name)
        return report

    def _fence(self, row: TopicRow, log: IntakeLogRow, decided: DecidedLosses) -> IntakeState:
        if not log.is_given_up and not self._registry.intake.begin_abandon(row, log=log, state=decided.to_json()):
            raise TopicBusy(
                "a server has taken the log or reported since, and nothing was changed: stop it first",
                topic=self._topic.name,
                log=log.folder,
            )
        return decided.state

    def _registered(self) -> tuple[TopicRow, IntakeLogRow]:
        name = self._topic.name
        rows = [row for row in self._registry.topics.every() if row.cluster_id == FLIGHT_CLUSTER and row.topic == name]
        log = self._registry.intake.of_topics(rows).get(rows[0].id) if rows else None
        if log is None:
            raise NotArchived("the topic never had a write-ahead log: there is nothing to give up", topic=name)
        if log.drained:
            raise IntakeError(
                "the table has all rows of the topic's last write-ahead log: there is nothing to give up. Start the"
                " server with any empty folder",
                topic=name,
                log=log.folder,
            )
        if log.silent_seconds < SILENT_SECONDS:
            raise TopicBusy(
                f"a server reported {log.silent_seconds:,.0f} seconds ago that it has the log: stop it first. If it has"
                f" crashed, wait until {SILENT_SECONDS:,.0f} seconds have passed",
                topic=name,
                log=log.folder,
            )
        return rows[0], log

    @contextmanager
    def _folder(self, log: IntakeLogRow) -> Iterator[Disk | None]:
        """Raises TopicBusy if another process has it open."""
        root = self._config.flight.wal
        folder = root / self._topic.name if root is not None else None
        if folder is None or not folder.is_dir():
            yield None
            return
        disk = LocalDisk(folder)
        try:
            log_id = self._log_id(disk)
            yield disk if log_id is None or log_id.wal_id == log.wal_id else None
        finally:
            disk.close()

    def _log_id(self, disk: Disk) -> LogId | None:
        """None if missing or damaged: segments name their log, too."""
        try:
            return LogId.read(disk, topic=self._topic.name)
        except (IntakeError, OSError):
            return None

    def _salvage(self, row: TopicRow, log: IntakeLogRow, ends: Mapping[int, int], disk: Disk | None) -> Salvage:
        if log.is_given_up:
            decided = DecidedLosses.from_json(log.states[-1])
            readable = Salvage(state=decided.state)
            if disk is not None:
                readable = find_salvage(disk, topic=self._topic.name, wal_id=log.wal_id, states=())
            return decided.salvage(readable)
        covered = covered_state([self._registry.intake.last_state(row), *log.states], ends)
        if disk is None:
            return Salvage(state=IntakeState.from_json(covered, most_clients=0))
        salvage = find_salvage(disk, topic=self._topic.name, wal_id=log.wal_id, states=[covered])
        sources = (log.next_offsets, ends, self._options.until)
        if salvage.is_whole and all(
            end <= salvage.state.next_offsets.get(number, 0) for source in sources for number, end in source.items()
        ):
            raise IntakeError(
                "the write-ahead log is whole: nothing need be lost. Start the server with it. If its disk can't be"
                " written, copy the folder to another disk, and set `flight.wal` to the copy",
                topic=self._topic.name,
                log=log.folder,
            )
        return salvage

    def _report(
        self, row: TopicRow, log: IntakeLogRow, ends: Mapping[int, int], salvage: Salvage, *, in_folder: bool
    ) -> AbandonedLog:
        return AbandonedLog(
            topic=self._topic.name,
            table=row.table,
            log=log,
            partitions=losses(
                salvage,
                ends,
                (log.next_offsets, self._options.until),
                partitions=self._topic.partitions or 0,
                skip=0 if log.is_given_up else self._options.skip,
                least=DecidedLosses.from_json(log.states[-1]).state.next_offsets if log.is_given_up else {},
            ),
            clients={name: salvage.state.clients.position(name).next_batch_id for name in salvage.state.clients.names},
            in_folder=in_folder,
            unreadable=salvage.unreadable,
            dry_run=self._options.dry_run,
        )

    def _write(self, report: AbandonedLog, disk: Disk | None, wal_id: str) -> None:
        """Commit up to the next loss of each partition at a time."""
        for steps in zip_longest(*(partition.steps for partition in report.partitions)):
            lost = [step[0] for step in steps if step is not None and step[0] is not None]
            runs = {step[1].partition: step[1] for step in steps if step is not None and step[1] is not None}
            self._table.begin()
            ranges = [*self._table.lost(lost)]
            if disk is not None and runs:
                rows = rows_to_write(
                    salvaged_batches(disk, topic=self._topic.name, wal_id=wal_id),
                    {partition: run.first for partition, run in runs.items()},
                    topic=self._topic.name,
                    until={partition: run.end for partition, run in runs.items()},
                )
                ranges += self._table.write(rows)
            self._table.stage(ranges)
            self._check(self._table.commit(), lost, list(runs.values()))

    def _check(self, ends: Mapping[int, int], *reached: Sequence[OffsetRange]) -> None:
        for offsets in (offsets for group in reached for offsets in group):
            if ends.get(offsets.partition, 0) < offsets.end:
                raise IntakeError(
                    "rows and losses didn't get into the table, and the log was not given up: run the command again",
                    topic=self._topic.name,
                    partition=offsets.partition,
                    offset=ends.get(offsets.partition, 0),
                    until=offsets.end,
                )
