"""A topic that clients fill: its log, and the thread that writes its files."""

from __future__ import annotations

import logging
import math
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from archiver.config import Config, TopicConfig
from archiver.errors import IntakeEnded, IntakeError
from archiver.intake.batches import Acknowledgement, IntakeBatch
from archiver.intake.clients import ClientPosition
from archiver.intake.disk import LocalDisk
from archiver.intake.events import IntakeObserver, TurnFailed, TurnWritten
from archiver.intake.files_turn import WrittenTurn, check_continuity, check_covered, check_reported, write_turn
from archiver.intake.log_thread import LogThread
from archiver.intake.row_encoding import RowEncoding
from archiver.intake.segments import LogId, LogSurvey
from archiver.intake.state import IntakeState
from archiver.intake.topic_log import LogLimits, LogUse, TopicLog
from archiver.intake.topic_table import TopicTable
from archiver.observer import ignore
from archiver.topics.opening import TopicServers
from catalog.errors import RegistryError
from catalog.model import new_id
from catalog.registry.intake_logs import IntakeLogRow, abandoned_error
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 5.0
_REPORT_SECONDS: Final = 5.0
_LOG_SHARE: Final = 4
"""A turn begins at the latest if a fourth of the log's bytes wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledStatus:
    """The table lacks `waiting_bytes`; `error` is the last turn's."""

    topic: str
    next_offsets: dict[int, int]
    waiting_bytes: int
    disk_bytes: int
    segments: int
    turns: int
    error: ContextError | None
    ended: ContextError | None


class FilledTopic:
    """Open in the constructor, then `start`. Thread-safe.

    Raises LogElsewhere if another log may have rows that the table lacks, else ContextError.
    """

    def __init__(
        self,
        config: Config,
        topic: TopicConfig,
        servers: TopicServers,
        *,
        table: TopicTable | None = None,
        observer: IntakeObserver = ignore,
        report_seconds: float = _REPORT_SECONDS,
    ) -> None:
        assert config.flight.wal is not None
        self.config = topic
        self._servers = servers
        self._table = table or TopicTable(config, topic, servers)
        self._folder = config.flight.wal / topic.name
        self._limits = LogLimits(wal_bytes=config.flight.wal_size, segment_bytes=config.flight.segment_size)
        self._most_clients = config.flight.max_clients
        self._disk = LocalDisk(self._folder)
        try:
            self._row, ends = self._table.register()
            self._epoch, self._log = self._begin(ends)
            check_continuity(self._log.next_offsets, ends, topic=topic.name)
        except BaseException:
            self._disk.close()
            raise
        self._appends = LogThread(self._log, name=topic.name, observer=observer)
        self._observer = observer
        self._stop = threading.Event()
        self._is_requested = False
        self._report_seconds = report_seconds
        self._is_settled = threading.Event()
        self._rereads: list[Future[None]] = []
        self._turn_began = -math.inf
        self._flushed = 0
        self._turns = 0
        self._error: ContextError | None = None
        self._waits_since: float | None = None if self._log.use.appended == 0 else time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"files-{topic.name}", daemon=True)
        self._reports = threading.Thread(target=self._run_reports, name=f"reports-{topic.name}", daemon=True)

    @property
    def partitions(self) -> int:
        assert self.config.partitions is not None
        return self.config.partitions

    @property
    def encoding(self) -> RowEncoding:
        """How rows are encoded: by the mapping in force at the last turn."""
        assert self._table.encoding is not None
        return self._table.encoding

    def reread(self) -> Future[None]:
        """Read the topic's schemas again, with the next turn. Done at once if one began within seconds."""
        read: Future[None] = Future()
        if self._stop.is_set() or time.monotonic() - self._turn_began < _RETRY_SECONDS:
            read.set_result(None)
        else:
            self._rereads.append(read)
        return read

    def start(self) -> None:
        self._thread.start()
        self._reports.start()

    def append(self, batch: IntakeBatch) -> Future[Acknowledgement]:
        return self._appends.append(batch)

    def fence(self, client: str, principal: str) -> Future[ClientPosition]:
        return self._appends.fence(client, principal)

    def position(self, client: str, principal: str) -> Future[ClientPosition]:
        return self._appends.position(client, principal)

    def status(self) -> FilledStatus:
        use = self._log.use
        return FilledStatus(
            topic=self.config.name,
            next_offsets=dict(self._log.next_offsets),
            waiting_bytes=use.appended - self._flushed,
            disk_bytes=use.disk,
            segments=use.begun,
            turns=self._turns,
            error=self._error,
            ended=self._log.ended,
        )

    def flush(self) -> WrittenTurn:
        """Write acknowledged rows to the table. Raises subclasses of ContextError.

        If requested, e.g. by an erasure, the rows are removed from the log, too.
        """
        started = time.monotonic()
        with self._table.leased(self._row):
            row = self._check_epoch()
            is_rolled = row.requested > row.written and self._roll()
            use = self._log.use
            turn = write_turn(self._log, self._table, topic=self.config.name)
        if is_rolled:
            self._servers.registry.intake.wrote(
                self._row, wal_id=self._log_id.wal_id, epoch=self._epoch, number=row.requested
            )
            self._is_requested = False
        self._flushed = use.appended
        self._waits_since = None
        self._turns += 1
        self._error = None
        seconds = time.monotonic() - started
        counts = {"rows": turn.rows, "files": turn.files, "file_bytes": turn.file_bytes}
        self._observer(TurnWritten(topic=self.config.name, write_seconds=turn.write_seconds, seconds=seconds, **counts))
        return turn

    def close(self) -> None:
        """Refuse new batches, and try to write the rest to the table."""
        self._appends.close()
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self.flush()
            self._report()
            if self._log.has_failed:  # its state counts batches that may not be durable
                return
            self._log.empty(self._log.next_offsets)
            state = self._log.state_json()
            self._servers.registry.intake.drain(self._row, wal_id=self._log_id.wal_id, epoch=self._epoch, state=state)
        except ContextError as error:
            _LOG.warning("rows of %s wait in the write-ahead log %s", self.config.name, self._folder, exc_info=error)
        finally:
            self._is_settled.set()
            if self._reports.is_alive():
                self._reports.join()
            self._disk.close()

    def _begin(self, ends: Mapping[int, int]) -> tuple[int, TopicLog]:
        registry, name = self._servers.registry, self.config.name
        survey = LogSurvey.read(self._disk, topic=name, most_clients=self._most_clients)
        last = registry.intake.of_topics([self._row]).get(self._row.id)
        if last is not None and survey.log_id.wal_id in last.abandoned:
            raise abandoned_error(name, folder=str(self._folder))
        if last is not None and last.wal_id != survey.log_id.wal_id and last.drained:
            check_covered(survey.state.next_offsets, ends, topic=name, last=last.folder)
            survey = self._fresh_log()
        self._check_newest(survey, last, ends)
        folder = f"{platform.node()}:{self._folder}"
        taken = registry.intake.take(
            self._row, wal_id=survey.log_id.wal_id, folder=folder, least_epoch=survey.epoch + 1
        )
        log = TopicLog(
            self._disk,
            topic=name,
            log_id=survey.log_id,
            epoch=taken.epoch,
            limits=self._limits,
            clock=lambda: time.time_ns() // 1_000_000,
        )
        log.begin(survey, IntakeState.from_json(taken.state, most_clients=self._most_clients))
        self._log_id = survey.log_id
        kept = last.states if last is not None and last.wal_id == survey.log_id.wal_id else ()
        self._table.own(wal_id=survey.log_id.wal_id, epoch=taken.epoch, states=[taken.state, *kept])
        return taken.epoch, log

    def _check_newest(self, survey: LogSurvey, last: IntakeLogRow | None, ends: Mapping[int, int]) -> None:
        """Raises BadLog for an older copy, before taking the log: that would end its good server."""
        is_own = last is not None and last.wal_id == survey.log_id.wal_id
        if last is not None and not (is_own or last.drained):
            return  # the other log is refused when this one is taken
        state = survey.state
        if not survey.segments:
            begins = self._servers.registry.intake.last_state(self._row)
            state = IntakeState.from_json(begins, most_clients=self._most_clients)
        check_continuity(state.next_offsets, ends, topic=self.config.name)
        if last is not None and is_own:
            check_reported(state.next_offsets, last.next_offsets, topic=self.config.name, log=last.folder)

    def _fresh_log(self) -> LogSurvey:
        """The table must have all rows of the earlier log."""
        LogId(wal_id=new_id()).write(self._disk)
        return LogSurvey.read(self._disk, topic=self.config.name, most_clients=self._most_clients)

    def _roll(self) -> bool:
        """Lets earlier segments be removed. False if there is no room, or the log ended."""
        try:
            return self._appends.roll().result()
        except IntakeError:
            return False

    def _check_epoch(self) -> IntakeLogRow:
        row = self._servers.registry.intake.of_topics([self._row]).get(self._row.id)
        if row is None or (row.wal_id, row.epoch) != (self._log_id.wal_id, self._epoch):
            error = IntakeEnded(
                "another process has taken over the topic's log: this one takes in nothing more",
                topic=self.config.name,
                log="unknown" if row is None else row.folder,
            )
            self._log.end(error)
            raise error
        self._is_requested = row.requested > row.written
        return row

    def _report(self) -> None:
        """Raises RegistryError, and IntakeEnded as `_check_epoch`.

        If a process with a copy of the folder took over, this one must soon refuse batches.
        """
        self._check_epoch()
        ends = self._log.next_offsets
        log_id = self._log_id.wal_id
        self._servers.registry.intake.report(self._row, wal_id=log_id, epoch=self._epoch, next_offsets=ends)

    def _run_reports(self) -> None:
        """A separate thread, because a turn may take minutes."""
        while not self._is_settled.is_set():
            try:
                self._report()
            except (RegistryError, IntakeEnded):  # the next turn raises it again
                pass
            except Exception:  # noqa: BLE001 - it is logged with its traceback, and reported again
                _LOG.exception("%s: the log's end was not reported", self.config.name)
            self._is_settled.wait(self._report_seconds)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            if self._is_due(self._log.use) and not self._attempt():
                self._stop.wait(_RETRY_SECONDS)
        _settle(self._rereads)

    def _attempt(self) -> bool:
        """Whether a turn succeeded. If not, its rows stay in the log."""
        rereads, self._rereads = self._rereads, []
        self._turn_began = time.monotonic()
        try:
            turn = self.flush()
            _LOG.info("%s: %d rows in %d files, %d bytes", self.config.name, turn.rows, turn.files, turn.file_bytes)
        except ContextError as error:
            if self._error is None or self._error.message != error.message:
                _LOG.warning("%s: rows wait in the log", self.config.name, exc_info=error)
            self._error = error
            self._observer(TurnFailed(topic=self.config.name))
            return False
        except Exception:  # noqa: BLE001 - it is logged with its traceback
            self._observer(TurnFailed(topic=self.config.name))
            _LOG.exception("%s: rows wait in the log", self.config.name)
            return False
        finally:
            _settle(rereads)
        return True

    def _is_due(self, use: LogUse) -> bool:
        waiting = use.appended - self._flushed
        if self._rereads:
            return True
        if self._is_requested and self._log.ended is None:
            return True
        if waiting <= 0:
            self._waits_since = None
            return False
        if self._waits_since is None:
            self._waits_since = time.monotonic()
        enough = min(self.config.min_file_size or 1, self.config.target_file_size, self._limits.wal_bytes // _LOG_SHARE)
        return waiting >= enough or time.monotonic() - self._waits_since >= self.config.max_lag


def _settle(rereads: Sequence[Future[None]]) -> None:
    for read in rereads:
        if read.set_running_or_notify_cancel():
            read.set_result(None)
