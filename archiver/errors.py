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
│   ├── ArchiveReplaced      the topic's table was dropped and created again while it was read
│   ├── RecordsRetired       the archive of a partition begins after the position of its reader
│   └── TargetReplaced       the topic that records are moved to was deleted and made again meanwhile
├── ServeError               a server for readers
│   ├── BadRequest           bytes from a client that are no request of the protocol
│   └── AuthenticationFailed a client who isn't who it says
├── IntakeError              a server that takes in rows
│   ├── BadBatch             a batch of rows that can't be taken as it is
│   │   └── RowsRefused      columns that don't fit the topic's schema
│   ├── BatchGap             a batch id that doesn't follow the client's last one
│   ├── BatchTooOld          a repeated batch id whose answer is no longer kept
│   ├── ClientTaken          another principal's client has the name
│   ├── ClientFenced         a newer incarnation of the client has taken over
│   ├── IntakeFull           (retryable) no room for more rows now
│   ├── IntakeEnded          (retryable) the topic's log takes in nothing more in this process
│   ├── BadLog               a write-ahead log that was changed, or belongs to another topic or place
│   └── LogNotWritten        (retryable) rows of a write-ahead log that should be in the table aren't yet
├── TransferTaken            another process has taken over a transfer to Kafka
├── SignatureInvalid         a signed document that was changed, or that another key signed
├── UpkeepError              a rewrite or repair that would not be exact; nothing was changed
└── LocalStackError          the embedded stack
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from schema_mapping.errors import ContextError


class ArchiverError(ContextError): ...


class ConfigError(ArchiverError):
    """Raised before any work starts. Names the key."""


class ConsentMissing(ConfigError): ...


class SourceError(ArchiverError): ...


class BrokerUnavailable(SourceError):
    retryable: ClassVar[bool] = True


class LeaderUnavailable(SourceError):
    retryable: ClassVar[bool] = True


class LeaderSilent(LeaderUnavailable): ...


class UnknownTopic(SourceError): ...


class AccessDenied(SourceError):
    """Names the resource."""


class LogTruncated(SourceError):
    retryable: ClassVar[bool] = True


class DataLoss(SourceError):
    """Names the range."""


class SchemaRegistryError(ArchiverError): ...


class SchemaRegistryUnavailable(SchemaRegistryError):
    retryable: ClassVar[bool] = True


class SchemaRegistryDenied(SchemaRegistryError): ...


class UnknownSubject(SchemaRegistryError): ...


class NewerSchema(SchemaRegistryError):
    """The next run opens the topic with it."""

    retryable: ClassVar[bool] = True


class BadSchema(SchemaRegistryError): ...


class CorruptBatch(ArchiverError): ...


class UnencodableBatch(ArchiverError): ...


class ParseHalted(ArchiverError): ...


class UnrecognizedHalted(ArchiverError): ...


class SchemaChangeWaits(ArchiverError):
    """Names the command that approves the changes."""


class TopicBusy(ArchiverError):
    retryable: ClassVar[bool] = True


class NoProgress(ArchiverError): ...


class InjectedFault(ArchiverError):
    retryable: ClassVar[bool] = True


class StorageError(ArchiverError): ...


class ObjectMissing(StorageError): ...


class StorageDenied(StorageError): ...


class CredentialsExpired(StorageDenied):
    retryable: ClassVar[bool] = True


class StorageUnavailable(StorageError):
    retryable: ClassVar[bool] = True


class UnknownFormat(StorageError): ...


class BadSegment(StorageError):
    """Or the format version is newer than this software."""


class EngineError(ArchiverError): ...


class WorkerLost(EngineError):
    retryable: ClassVar[bool] = True


class TaskInterrupted(EngineError):
    retryable: ClassVar[bool] = True


class CheckFailed(ArchiverError):
    """Or a check got no answer in time."""


class NotArchived(ArchiverError):
    """Not registered, or no schema assigned yet."""


class ReplayError(ArchiverError): ...


class NoTable(ReplayError):
    """Never archived, or the table was dropped."""


class ArchiveReplaced(ReplayError): ...


class RecordsRetired(ReplayError):
    """`position` is the reader's next offset, `first_offset` the first remaining one."""

    @property
    def first_offset(self) -> int:
        return int(str(self.context["first_offset"]))


class TargetReplaced(ReplayError): ...


class ServeError(ArchiverError): ...


class BadRequest(ServeError):
    """The connection is closed."""


class AuthenticationFailed(ServeError):
    """The message never shows a secret."""


class IntakeError(ArchiverError): ...


class BadBatch(IntakeError):
    """Sending the same bytes again doesn't help."""


class RowsRefused(BadBatch):
    """Names the columns."""


class BatchGap(IntakeError): ...


class BatchTooOld(IntakeError):
    """The batch was taken in before."""


class ClientTaken(IntakeError):
    """Nothing was taken in."""


class ClientFenced(IntakeError): ...


class IntakeFull(IntakeError):
    """Nothing of the batch was taken in. `retry_seconds` says when to send it again."""

    retryable: ClassVar[bool] = True


class IntakeEnded(IntakeError):
    """The batch may have been taken in. Sending it again finds out."""

    retryable: ClassVar[bool] = True


class BadLog(IntakeError): ...


class LogNotWritten(IntakeError):
    retryable: ClassVar[bool] = True


class TransferTaken(ArchiverError):
    """Or the broker has ended a transaction that took too long."""


class SignatureInvalid(ArchiverError): ...


class UpkeepError(ArchiverError):
    """The rewrite was not made."""


class LocalStackError(ArchiverError): ...


def blamed_file(error: ContextError, paths: Collection[str]) -> str | None:
    """The file that an error names, so that a job can continue with the rest."""
    return next((value for value in error.context.values() if isinstance(value, str) and value in paths), None)
