"""The values of `archiver status`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archiver.errors import ConsentMissing, SchemaChangeWaits
from archiver.kafka.open_transactions import OpenTransaction
from archiver.topics.owner_status import OpenErasure
from catalog.model import FileState, StateCount
from catalog.ranges.holes import AlteredRange, GoneRows, Hole
from catalog.recognition import Doubt, Recognition
from catalog.registry.chores import ChoreState
from catalog.registry.intake_logs import IntakeLogRow
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """Offsets are next ones: `archived_to` in the table, `staged_to` in files; None if never archived.

    `lag_records` is an upper bound, in offsets; `lag_seconds` is the oldest's age by timestamp.
    `open_transactions` block the last stable offset. `first_offset` is set after retirement.
    """

    partition: int
    archived_to: int | None = None
    first_offset: int | None = None
    staged_to: int | None = None
    staged_files: int = 0
    log_start: int | None = None
    last_stable: int | None = None
    high_watermark: int | None = None
    lag_records: int | None = 0
    lag_seconds: float | None = None
    open_transactions: tuple[OpenTransaction, ...] = ()
    proves_epochs: bool = True
    problem: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """`problem` is of the topic as a whole.

    `holes` are missing rows, `gone` accepted ones, `altered` ranges changed or duplicated by other engines;
    nothing before `unseen_before` was checked. `recognition` is the fit of schemas, without `uncounted_rows`.
    `consent` blocks `expire = "auto"`, `waiting_change` needs approval. `holds` counts legal holds in force;
    `doubts` are parts whose schema hardly fits. `log` is a filled topic's write-ahead log.
    """

    topic: str
    table: str
    partitions: tuple[PartitionStatus, ...] = ()
    files: Mapping[FileState, StateCount] = field(default_factory=dict)
    lost_offsets: int = 0
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared_rows: int = 0
    unseen_before: int | None = None
    gone: GoneRows = field(default_factory=GoneRows)
    holds: int = 0
    recognition: Recognition = field(default_factory=Recognition)
    uncounted_rows: int = 0
    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    erasures: tuple[OpenErasure, ...] = ()
    owner_remarks: tuple[str, ...] = ()
    hidden_rows: tuple[str, ...] = ()
    problem: ContextError | None = None
    consent: ConsentMissing | None = None
    waiting_change: SchemaChangeWaits | None = None
    chores: tuple[ChoreState, ...] = ()
    log: IntakeLogRow | None = None

    @property
    def is_seen(self) -> bool:
        return bool(self.partitions or self.files)

    @property
    def lag_records(self) -> int | None:
        """None if Kafka or the table did not answer."""
        lags = [partition.lag_records for partition in self.partitions]
        return sum(filter(None, lags)) if lags and None not in lags else None

    @property
    def lag_seconds(self) -> float | None:
        return max(
            (partition.lag_seconds for partition in self.partitions if partition.lag_seconds is not None), default=None
        )

    @property
    def problems(self) -> tuple[ContextError, ...]:
        whole = tuple(error for error in (self.problem, self.consent, self.waiting_change) if error)
        return whole + tuple(partition.problem for partition in self.partitions if partition.problem)
