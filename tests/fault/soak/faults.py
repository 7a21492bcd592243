"""What can befall an archiver, as values: a closed union, each kind with its parameters.

A round of the soak is one or two of them. The results of rounds keep the names of kinds and parameters: don't rename
them.
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
    """SIGKILL of the driver at a step, or of a Spark worker where the step is a task's."""

    point: FaultPoint
    passage: int = 1
    spark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KillLater:
    """SIGKILL of the driver at no step in particular."""

    seconds: float
    spark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """SIGTERM: the job is to end in order."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """The job is suspended at a step; another one archives everything; then the first goes on."""

    point: FaultPoint
    passage: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """Archivers at work on the same topics at once, none kept back by the lease."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersCommit:
    """Another client commits to the table all the while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFails:
    """The catalog, or what stands before it, mistreats commits."""

    fault: CommitFault
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLate:
    """The catalog gets a commit after its client gave up, or died."""

    delivery: Delivery
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleLoad:
    """A commit of a job lands, its `answer` is wrong, and the next loads are this many states behind: from a cache."""

    job: Literal["archive", "compact"]
    answer: CommitFault
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAway:
    """The catalog doesn't answer for whole runs; `archiver reconcile` commits what was staged, `killed` at a step."""

    runs: int
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFails:
    """The object store, or the way to it, mistreats requests."""

    fault: ObjectFault
    times: int
    skip: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRestarts:
    """A server ends while the job is at a step, and comes back."""

    server: Server
    point: FaultPoint
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStalls:
    """A server is suspended while the job is at a step, and goes on some seconds later."""

    server: Server
    point: FaultPoint
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryLost:
    """A job is killed at a step, the registry's database is gone, and its rebuilding killed after some seconds."""

    point: FaultPoint
    rebuild_killed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySplit:
    """A job is suspended at a step; the registry is rebuilt elsewhere, all archived by it; then the first goes on."""

    point: FaultPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersExpire:
    """A job is killed at a step; somebody else commits on top and expires every snapshot but that."""

    point: FaultPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansRemoved:
    """A job is killed at a step, or with its commit on the way (None); `archiver orphans --delete` cleans up."""

    point: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCut:
    """An unclean leader: the log ends earlier than what is archived; `regrown` beyond that by other records."""

    regrown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDeleted:
    """Retention takes records before they are archived; `killed` at a step of the run that accepts the gap."""

    killed: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecreated:
    """The topic is deleted and made again under its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMoves:
    """Every partition gets another leader while the job is at a step, and more often as it goes on, under load."""

    point: FaultPoint
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """Each broker restarts in turn while the job goes on from a step, records come and a transaction is open."""

    point: FaultPoint
    killed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """A replica that stood still leads, for the others are gone: what it lacks was `archived`, or only planned."""

    archived: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutlives:
    """Leaders change between a transaction's records and its end; `killed` at a step of the run that archives both."""

    killed: FaultPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """Others set the table back by so many commits; more is produced (`goes_on`); `killed` while it is refilled."""

    snapshots: int
    goes_on: bool
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDeleted:
    """Others delete rows, a file's or a `whole` partition's; `killed` at a step of the refill that brings them back."""

    whole: bool
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactKilled:
    """`archiver compact` is killed at a step, or suspended there while an archiver works `beside` it, and run again."""

    point: FaultPoint
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireRaces:
    """A job is killed at a step, or suspended there while something else is at work `beside` it, and run again.

    `expire` takes whole files, `edge` rows of files too; `compact` and `archive` are overtaken by removals.
    """

    job: Literal["expire", "edge", "erase", "compact", "archive"]
    point: FaultPoint | AuditPoint | RemovalPoint
    beside: Literal["archive", "compact", "hold", "expire", "edge", "erase"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredBeneath:
    """Records are retired and their files deleted while a reader is before them: it must not step over them."""

    reader: Literal["consumer", "export"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChanged:
    """Others partition the table by another column, while files are `staged` or not, and later as it was."""

    staged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEmpty:
    """The store has nothing for two runs, as an empty mount hasn't; Kafka `deleted` what was staged meanwhile."""

    answer: ObjectFault
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTopics:
    """More topics than Postgres gives connections, archived by one job, itself `killed` at its twentieth such step."""

    count: int
    killed: FaultPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsExpire:
    """A catalog vends credentials, each of which holds for so many `uses`, to a job of so many records of 2 KB.

    A use is a request of an upload: two uploads go on at once, one request each, so that two uses are the least.
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
    """A fault as plain JSON values: its kind and its parameters."""
    values = {each.name: getattr(fault, each.name) for each in fields(fault)}
    return {"kind": type(fault).__name__} | {
        name: value.name.lower() if isinstance(value, Enum) else value for name, value in values.items()
    }


def needs_new_topic(fault: Fault) -> bool:
    """Whether it can only befall a topic that never was archived."""
    return isinstance(fault, KillAtPoint | Overtaken) and fault.point is FaultPoint.AFTER_CREATE


def ends_topic(fault: Fault) -> bool:
    """Whether its topic stops for good."""
    return isinstance(fault, LogCut | TopicRecreated) or (isinstance(fault, UncleanElection) and fault.archived)


def restarts_servers(fault: Fault) -> bool:
    """Whether it needs servers of its own: others would notice."""
    return isinstance(fault, ServerRestarts | ServerStalls | LogCut | RollingRestart | UncleanElection)


def on_cluster(fault: Fault) -> bool:
    """Whether it needs more brokers than one."""
    return isinstance(fault, LeaderMoves | RollingRestart | UncleanElection | TransactionOutlives)


def is_quick(fault: Fault) -> bool:
    """Whether a round takes seconds on a stack with one broker that other tests use as well."""
    if isinstance(fault, StoreFails) and (fault.fault is ObjectFault.SILENCE or fault.times > 3):
        return False
    return not (isinstance(fault, ManyTopics) or on_spark(fault) or restarts_servers(fault) or on_cluster(fault))


def on_spark(fault: Fault) -> bool:
    """Whether it needs Spark."""
    return isinstance(fault, KillAtPoint | KillLater) and fault.spark
