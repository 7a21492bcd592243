"""How far topics are archived, and what stops them: the values that `archiver status` shows."""

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
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition. Offsets are those that come next: `archived_to` in the table, `staged_to` with uploaded files.

    Both are None where it never was archived. `first_offset` is where it begins, if older records were retired.
    `lag_records` are offsets, so at most so many records; `lag_seconds` is the age of the oldest of them by its
    timestamp, None where nothing waits or it has none. `open_transactions` hold the last stable offset back.
    `proves_epochs` is false if its leader's answers about epochs prove nothing. `problem` is why the job could not
    continue with it.
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
    """A topic: its partitions by number, its files by state, lost offsets that were accepted; `problem` as a whole.

    `holds` is how many legal holds are in force. `holes` are archived rows that the table doesn't have, `gone` those
    of which that is accepted, `altered` are ranges whose rows others changed or doubled. `uncompared_rows` is how many
    rows others may have changed that aren't compared yet; changes before the snapshot `unseen_before` weren't looked
    at. `recognition` says how well the schemas fitted the archived records, of which nobody counted `uncounted_rows`.
    `doubts` are the parts whose schema is hardly right, unless the topic says that it doesn't matter. `erasures` are
    the open ones, with what keeps them. `owner_remarks` say what the table's owner set against the archiver's settings,
    `hidden_rows` which rows engines leave out by the table's partitions.
    `consent` says that `expire = "auto"` retires nothing before somebody agrees, `waiting_change` that a schema change
    waits for approval. `chores` has
    every chore that ever ran.
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

    @property
    def is_seen(self) -> bool:
        """Whether something is known of the topic: its partitions, or what the registry has of it."""
        return bool(self.partitions or self.files)

    @property
    def lag_records(self) -> int | None:
        """Offsets that wait. None if Kafka or the table did not answer."""
        lags = [partition.lag_records for partition in self.partitions]
        return sum(filter(None, lags)) if lags and None not in lags else None

    @property
    def lag_seconds(self) -> float | None:
        """The age of the oldest record that waits."""
        return max((each.lag_seconds for each in self.partitions if each.lag_seconds is not None), default=None)

    @property
    def problems(self) -> tuple[ContextError, ...]:
        """Everything that keeps the job from going on, or from retiring."""
        whole = tuple(error for error in (self.problem, self.consent, self.waiting_change) if error)
        return whole + tuple(partition.problem for partition in self.partitions if partition.problem)
