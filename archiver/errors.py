"""The error tree of `archiver`.

ArchiverError
├── ConfigError              configuration that can't work; nothing has been started
│   └── ConsentMissing       a removal that somebody has to agree to first; nothing was removed
├── SourceError              Kafka
│   ├── BrokerUnavailable    (retryable) no broker answers
│   ├── LeaderUnavailable    (retryable) no broker leads the partition, or its leader does not answer
│   │   └── LeaderSilent     (retryable) its leader answers with no records, though its log continues
│   ├── UnknownTopic         no such topic or partition
│   ├── AccessDenied         the principal lacks a right, or the credentials are wrong
│   ├── LogTruncated         (retryable) the log was cut back while it was read; the next look compares it again
│   └── DataLoss             the log no longer holds the next offsets, or contradicts what is archived
├── SchemaRegistryError      the schema registry
│   ├── SchemaRegistryUnavailable (retryable) it doesn't answer, or asks to slow down
│   ├── SchemaRegistryDenied the credentials are wrong, or have no right to read this
│   ├── UnknownSubject       it has no schema under this name
│   ├── NewerSchema          (retryable) a record's schema is newer than the topic's opening
│   └── BadSchema            a schema that can't be compiled
├── CorruptBatch             a record batch whose bytes contradict its own header or checksum
├── UnencodableBatch         rows that can't form a valid record batch
├── ParseHalted              a record that can't be decoded, and the topic says `on_parse_error = "halt"`
├── UnrecognizedHalted       a record with fields that the schema doesn't know, and `on_unrecognized = "halt"`
├── SchemaChangeWaits        a schema change waits for approval, and nothing continues without it
├── TopicBusy                (retryable) another archiver works on the topic
├── NoProgress               a partition's tasks returned nothing new, again and again
├── InjectedFault            (retryable) a test asked for a failure (ARCHIVER_FAULT)
├── StorageError             the object store or a data file
│   ├── ObjectMissing        no object at this path
│   ├── StorageDenied        the credentials have no right to do this
│   │   └── CredentialsExpired (retryable) the credentials that the catalog vended have expired
│   ├── StorageUnavailable   (retryable) the store doesn't answer, or asks to slow down
│   ├── UnknownFormat        a data file in a format that this archiver can't read
│   └── BadSegment           a data file whose bytes or version can't be read
├── EngineError              Spark
│   ├── WorkerLost           (retryable) the process that ran a task ended
│   └── TaskInterrupted      (retryable) a task was stopped on request
├── CheckFailed              a check of the set-up found what can't work
├── NotArchived              a topic that has no archive yet
├── ReplayError              the read path
│   ├── NoTable              the topic has no table in the catalog
│   ├── ArchiveReplaced      the topic's table was dropped and made anew while it was read
│   ├── RecordsRetired       the archive of a partition begins after the position of its reader
│   └── TargetReplaced       the topic that records are moved to was deleted and made again meanwhile
├── ServeError               a server for readers
│   ├── BadRequest           bytes from a client that are no request of the protocol
│   └── AuthenticationFailed a client who isn't who it says
├── TransferTaken            another process has taken over a transfer to Kafka
├── SignatureInvalid         a signed document that was changed, or that another key signed
├── UpkeepError              a rewrite or repair that would not be exact; nothing was changed
└── LocalStackError          the embedded stack
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from schema_mapping.errors import ContextError


class ArchiverError(ContextError):
    """Root of what `archiver` raises."""


class ConfigError(ArchiverError):
    """Configuration that can't work. Raised before any work starts. Names the key and what to do."""


class ConsentMissing(ConfigError):
    """A removal needs consent, and nobody gave it. Nothing was removed. Says how to give it."""


class SourceError(ArchiverError):
    """Kafka did not do what was asked of it."""


class BrokerUnavailable(SourceError):
    """No broker answers at the given addresses."""

    retryable: ClassVar[bool] = True


class LeaderUnavailable(SourceError):
    """No broker leads the partition, or its leader does not answer. Elections and restarts pass."""

    retryable: ClassVar[bool] = True


class LeaderSilent(LeaderUnavailable):
    """The leader of a partition answers with no records, though its log continues."""


class UnknownTopic(SourceError):
    """No such topic or partition, as far as the principal may see."""


class AccessDenied(SourceError):
    """The principal lacks a right, or its credentials are wrong. The error names the resource."""


class LogTruncated(SourceError):
    """The log was cut back while it was read. The next look at it compares it with what is archived."""

    retryable: ClassVar[bool] = True


class DataLoss(SourceError):
    """The log no longer holds the next offsets, or contradicts what is archived. Names the range."""


class SchemaRegistryError(ArchiverError):
    """The schema registry did not do what was asked of it."""


class SchemaRegistryUnavailable(SchemaRegistryError):
    """The schema registry doesn't answer, or asks to slow down."""

    retryable: ClassVar[bool] = True


class SchemaRegistryDenied(SchemaRegistryError):
    """The schema registry refuses the credentials, or they have no right to read this."""


class UnknownSubject(SchemaRegistryError):
    """The schema registry has no schema under this name; check the topic, the subject strategy and the url."""


class NewerSchema(SchemaRegistryError):
    """A record has a schema that its subject got after the topic was opened. The next run opens the topic with it."""

    retryable: ClassVar[bool] = True


class BadSchema(SchemaRegistryError):
    """A schema of the registry that can't be compiled, or isn't Protobuf. Names its id."""


class CorruptBatch(ArchiverError):
    """A record batch whose bytes contradict its own header or checksum."""


class UnencodableBatch(ArchiverError):
    """Rows that can't form a valid record batch. Names its base offset and what is wrong."""


class ParseHalted(ArchiverError):
    """A record can't be decoded, and the topic says `on_parse_error = "halt"`. Names offset and code."""


class UnrecognizedHalted(ArchiverError):
    """A record has fields that the schema doesn't know, and the topic says `on_unrecognized = "halt"`. Names offset."""


class SchemaChangeWaits(ArchiverError):
    """A schema change breaks queries and waits for approval. Names the changes and the command that approves them."""


class TopicBusy(ArchiverError):
    """Another archiver works on the topic."""

    retryable: ClassVar[bool] = True


class NoProgress(ArchiverError):
    """A partition's tasks returned nothing new, again and again, though its log has more records."""


class InjectedFault(ArchiverError):
    """A test asked for a failure here (ARCHIVER_FAULT)."""

    retryable: ClassVar[bool] = True


class StorageError(ArchiverError):
    """The object store or a data file did not do what was asked of it."""


class ObjectMissing(StorageError):
    """There is no object at this path."""


class StorageDenied(StorageError):
    """The credentials have no right to do this. Names the object, and the local file if it was kept."""


class CredentialsExpired(StorageDenied):
    """The credentials that the catalog vended have expired, and it gives no others now. It may later."""

    retryable: ClassVar[bool] = True


class StorageUnavailable(StorageError):
    """The object store doesn't answer, or asks to slow down."""

    retryable: ClassVar[bool] = True


class UnknownFormat(StorageError):
    """A data file in a format that this archiver can't read. Names the file and the format."""


class BadSegment(StorageError):
    """A data file whose bytes contradict themselves, or whose format version is newer than this software's."""


class EngineError(ArchiverError):
    """Spark could not run the tasks."""


class WorkerLost(EngineError):
    """The process that ran a task ended or could not be started."""

    retryable: ClassVar[bool] = True


class TaskInterrupted(EngineError):
    """A task was stopped on request before it finished."""

    retryable: ClassVar[bool] = True


class CheckFailed(ArchiverError):
    """A check of the set-up found what can't work, or got no answer in its time."""


class NotArchived(ArchiverError):
    """A topic that the registry doesn't know, or that no schema has been assigned to yet."""


class ReplayError(ArchiverError):
    """A replay that can't be exact. Names the file or range."""


class NoTable(ReplayError):
    """The topic has no table in the catalog: it was never archived, or its table was dropped. Names both."""


class ArchiveReplaced(ReplayError):
    """The topic's table was dropped and made anew while it was read. Names both tables."""


class RecordsRetired(ReplayError):
    """Records were retired before their reader came to them. Names topic, partition, position and first offset.

    `position` is the offset that the reader wants next, `first_offset` the first one that wasn't retired.
    """

    @property
    def first_offset(self) -> int:
        """The first offset of the partition that wasn't retired."""
        return int(str(self.context["first_offset"]))


class TargetReplaced(ReplayError):
    """The topic that records are moved to was deleted and made again during the transfer. Names both topic ids."""


class ServeError(ArchiverError):
    """A server for readers can't do its work."""


class BadRequest(ServeError):
    """Bytes from a client that are no request of the protocol, or that are beyond a limit. Its connection is closed."""


class AuthenticationFailed(ServeError):
    """A client could not show who it is. The message says what was wrong, and never shows a secret."""


class TransferTaken(ArchiverError):
    """Another process has taken over the transfer, or the broker has ended a transaction that took too long."""


class SignatureInvalid(ArchiverError):
    """A signed document that was changed since, or that another key signed."""


class UpkeepError(ArchiverError):
    """A rewrite or repair that would not be exact. It was not made. Names the file."""


class LocalStackError(ArchiverError):
    """A part of the embedded stack did not start or stop."""


def blamed_file(error: ContextError, paths: Collection[str]) -> str | None:
    """The one of these files that an error names, for jobs that name it, too, and go on with the others."""
    return next((each for each in error.context.values() if isinstance(each, str) and each in paths), None)
