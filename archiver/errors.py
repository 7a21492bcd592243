"""The error tree of `archiver`.

ArchiverError
├── ConfigError              configuration that cannot work; nothing has been started
├── SourceError              Kafka
│   ├── BrokerUnavailable    (retryable) no broker answers
│   ├── LeaderUnavailable    (retryable) no broker leads the partition, or its leader does not answer
│   ├── UnknownTopic         no such topic or partition
│   ├── AccessDenied         the principal lacks a right, or the credentials are wrong
│   ├── LogTruncated         (retryable) the log was cut back while it was read; the next look says what that means
│   └── DataLoss             the log no longer holds, or contradicts, what comes next
├── SchemaRegistryError      the schema registry
│   ├── SchemaRegistryUnavailable (retryable) it doesn't answer, or asks to slow down
│   ├── SchemaRegistryDenied the credentials are wrong, or may not read this
│   ├── UnknownSubject       it has no schema under this name
│   └── BadSchema            a schema that can't be compiled
├── CorruptBatch             bytes of a record batch that contradict their own header or checksum
├── UnencodableBatch         rows that make no valid record batch
├── ParseHalted              a record that can't be decoded, where the topic says `on_parse_error = "halt"`
├── TopicBusy                (retryable) another archiver is at work on the topic
├── NoProgress               a task came back with nothing, again and again
├── InjectedFault            a test asked for a failure (ARCHIVER_FAULT)
├── StorageError             the object store or a data file
│   ├── ObjectMissing        no object at this path
│   ├── StorageDenied        the credentials may not do this
│   │   └── CredentialsExpired (retryable) those that the catalog vended have ended
│   ├── StorageUnavailable   (retryable) the store doesn't answer, or asks to slow down
│   ├── UnknownFormat        a data file in a format that this archiver doesn't read
│   └── BadSegment           a data file whose bytes or version can't be read
├── EngineError              Spark
│   ├── WorkerLost           (retryable) the process that ran a task went away
│   └── TaskInterrupted      (retryable) a task was stopped on request
├── NotArchived              a topic that has no archive yet
├── ReplayError              the read path
├── UpkeepError              a repair that would not be exact; nothing was changed
└── LocalStackError          the embedded stack
"""

from __future__ import annotations

from typing import ClassVar

from schema_mapping.errors import ContextError


class ArchiverError(ContextError):
    """Root of what `archiver` raises."""


class ConfigError(ArchiverError):
    """Configuration that cannot work; raised before any work starts, naming the key and what to do."""


class SourceError(ArchiverError):
    """Kafka did not give what was asked of it."""


class BrokerUnavailable(SourceError):
    """No broker answers at the addresses given."""

    retryable: ClassVar[bool] = True


class LeaderUnavailable(SourceError):
    """No broker leads the partition, or its leader does not answer; elections and restarts pass."""

    retryable: ClassVar[bool] = True


class UnknownTopic(SourceError):
    """No such topic or partition, as far as the principal may see."""


class AccessDenied(SourceError):
    """The principal lacks a right, or its credentials are wrong; names the resource."""


class LogTruncated(SourceError):
    """The log was cut back while it was read; the next look compares it with what is archived."""

    retryable: ClassVar[bool] = True


class DataLoss(SourceError):
    """The log no longer holds, or contradicts, what comes next; names the lost or diverging range."""


class SchemaRegistryError(ArchiverError):
    """The schema registry did not give what was asked of it."""


class SchemaRegistryUnavailable(SchemaRegistryError):
    """The schema registry doesn't answer, or asks to slow down."""

    retryable: ClassVar[bool] = True


class SchemaRegistryDenied(SchemaRegistryError):
    """The schema registry refuses the credentials, or they may not read this."""


class UnknownSubject(SchemaRegistryError):
    """The schema registry has no schema under this name; check the topic, the subject strategy and the url."""


class BadSchema(SchemaRegistryError):
    """A schema of the registry that can't be compiled, or isn't Protobuf; names its id."""


class CorruptBatch(ArchiverError):
    """Bytes of a record batch that contradict their own header or checksum."""


class UnencodableBatch(ArchiverError):
    """Rows that make no valid record batch; names its base offset and what is wrong."""


class ParseHalted(ArchiverError):
    """A record that can't be decoded, where the topic says `on_parse_error = "halt"`; names offset and code."""


class TopicBusy(ArchiverError):
    """Another archiver is at work on the topic."""

    retryable: ClassVar[bool] = True


class NoProgress(ArchiverError):
    """A partition's tasks came back with nothing, again and again, though its log goes on."""


class InjectedFault(ArchiverError):
    """A test asked for a failure here (ARCHIVER_FAULT)."""

    retryable: ClassVar[bool] = True


class StorageError(ArchiverError):
    """The object store or a data file did not do what was asked of it."""


class ObjectMissing(StorageError):
    """No object at this path."""


class StorageDenied(StorageError):
    """The credentials may not do this; names the object, and the local file if it was kept."""


class CredentialsExpired(StorageDenied):
    """The credentials that the catalog vended have ended, and it gives no others now; later it may."""

    retryable: ClassVar[bool] = True


class StorageUnavailable(StorageError):
    """The object store doesn't answer, or asks to slow down."""

    retryable: ClassVar[bool] = True


class UnknownFormat(StorageError):
    """A data file in a format that this archiver doesn't read; names the file and the format."""


class BadSegment(StorageError):
    """A data file whose bytes contradict themselves, or whose format version is newer than this software's."""


class EngineError(ArchiverError):
    """Spark could not run a list of tasks."""


class WorkerLost(EngineError):
    """The process that ran a task went away, or could not be started."""

    retryable: ClassVar[bool] = True


class TaskInterrupted(EngineError):
    """A task was stopped on request before it finished."""

    retryable: ClassVar[bool] = True


class NotArchived(ArchiverError):
    """A topic that the registry doesn't know, or that no schema has been assigned to yet."""


class ReplayError(ArchiverError):
    """A replay that cannot be exact; names the file or range."""


class UpkeepError(ArchiverError):
    """A rewrite or repair that would not be exact, and therefore was not made; names the file."""


class LocalStackError(ArchiverError):
    """A part of the embedded stack did not start or stop."""
