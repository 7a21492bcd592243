"""The faults, as a closed union.

Results keep names of kinds and parameters: don't rename them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Literal, TypeAlias

from archiver.fault_points import AuditPoint, FaultPoint, RemovalPoint
from tests.support.catalog.lossy_catalog import Delivery
from tests.support.catalog.lossy_catalog import Fault as CommitFault
from tests.support.storage.lossy_objects import ObjectFault

Server = Literal["kafka", "postgres", "seaweedfs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KillAtPoint:
    """SIGKILL of the driver, or of a Spark worker at a task's step."""

    point: FaultPoint
    passage: int = 1
    spark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KillLater:
    seconds: float
    spark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    point: FaultPoint
    passage: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersCommit: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFails:
    fault: CommitFault
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLate:
    delivery: Delivery
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleLoad:
    """A commit lands with a wrong `answer`, and the next loads are `behind` states old."""

    job: Literal["archive", "compact"]
    answer: CommitFault
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAway:
    """The catalog is away for whole runs; `reconcile` may be `killed` at a step."""

    runs: int
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFails:
    fault: ObjectFault
    times: int
    skip: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRestarts:
    server: Server
    point: FaultPoint
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStalls:
    server: Server
    point: FaultPoint
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLost:
    """A job is killed and the registry's database lost; the rebuild may be killed."""

    point: FaultPoint
    rebuild_killed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySplit:
    """A job is suspended while an archiver with a rebuilt registry archives everything."""

    point: FaultPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersExpire:
    point: FaultPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansRemoved:
    """A job is killed at a step, or with its commit on the way (None); then `archiver orphans --delete`."""

    point: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCut:
    """An unclean leader's log is shorter than the archive, or `regrown` with other records."""

    regrown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDeleted:
    """Retention deletes unarchived records; `killed` at a step of the run that accepts the gap."""

    killed: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecreated: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMoves:
    """Leaders move at a job's step, and `times` more under load."""

    point: FaultPoint
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """Brokers restart in turn from a job's step on, under load and with an open transaction."""

    point: FaultPoint
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """A stale replica leads; its missing records were `archived`, or only planned."""

    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutlives:
    """Leaders change within a transaction; `killed` at a step of the run that archives it."""

    killed: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The table is set back by `snapshots` commits; `goes_on`: more is produced; `killed` during the refill."""

    snapshots: int
    goes_on: bool
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDeleted:
    """Another writer deletes a file's rows, or a `whole` partition's; `killed` during the refill."""

    whole: bool
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactKilled:
    point: FaultPoint
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireRaces:
    """A job is killed at a step, or suspended `beside` another, and run again.

    `expire` removes whole files, `edge` also rows of files; removals overtake `compact` and `archive`.
    """

    job: Literal["expire", "edge", "erase", "compact", "archive"]
    point: FaultPoint | AuditPoint | RemovalPoint
    beside: Literal["archive", "compact", "hold", "expire", "edge", "erase"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredBeneath:
    """Records are retired before a reader gets there: it must not skip them."""

    reader: Literal["consumer", "export"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChanged:
    """The table is partitioned by another column, with files `staged` or not, and later back."""

    staged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEmpty:
    """The store is empty for two runs, like a missing mount; Kafka `deleted` the staged records."""

    answer: ObjectFault
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTopics:
    """More topics than Postgres allows connections; `killed` at its twentieth step."""

    count: int
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsExpire:
    """Vended credentials allow `uses` upload requests; the job has `records` records of 2 KB.

    Two uploads run at once, so two uses are the least.
    """

    uses: int
    records: int


Fault: TypeAlias = (
    KillAtPoint
    | KillLater
    | Terminate
    | Overtaken
    | Rivals
    | OthersCommit
    | CommitFails
    | CommitLate
    | StaleLoad
    | CatalogAway
    | StoreFails
    | ServerRestarts
    | ServerStalls
    | RegistryLost
    | RegistrySplit
    | OthersExpire
    | OrphansRemoved
    | LogCut
    | RecordsDeleted
    | TopicRecreated
    | LeaderMoves
    | RollingRestart
    | UncleanElection
    | TransactionOutlives
    | RolledBack
    | RowsDeleted
    | CompactKilled
    | RetireRaces
    | RetiredBeneath
    | SpecChanged
    | StoreEmpty
    | ManyTopics
    | CredentialsExpire
)


def described(fault: Fault) -> dict[str, Any]:
    values = {field.name: getattr(fault, field.name) for field in fields(fault)}
    return {"kind": type(fault).__name__} | {
        name: value.name.lower() if isinstance(value, Enum) else value for name, value in values.items()
    }


def needs_new_topic(fault: Fault) -> bool:
    return isinstance(fault, KillAtPoint | Overtaken) and fault.point is FaultPoint.AFTER_CREATE


def ends_topic(fault: Fault) -> bool:
    return isinstance(fault, LogCut | TopicRecreated) or (isinstance(fault, UncleanElection) and fault.archived)


def restarts_servers(fault: Fault) -> bool:
    return isinstance(fault, ServerRestarts | ServerStalls | LogCut | RollingRestart | UncleanElection)


def on_cluster(fault: Fault) -> bool:
    return isinstance(fault, LeaderMoves | RollingRestart | UncleanElection | TransactionOutlives)


def is_quick(fault: Fault) -> bool:
    if isinstance(fault, StoreFails) and (fault.fault is ObjectFault.SILENCE or fault.times > 3):
        return False
    return not (isinstance(fault, ManyTopics) or on_spark(fault) or restarts_servers(fault) or on_cluster(fault))


def on_spark(fault: Fault) -> bool:
    return isinstance(fault, KillAtPoint | KillLater) and fault.spark
