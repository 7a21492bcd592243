"""The error tree of `catalog`: the registry in Postgres and the Iceberg tables.

CatalogError
├── RegistryError            Postgres
│   ├── RegistryUnreachable  (retryable) no answer, or the server gave up on the call
│   ├── RegistryMisnamed     the dsn can't be read; no server was called
│   ├── RegistryPooled       a pooler gives away the server's sessions between transactions
│   ├── RegistryDenied       credentials, rights or the database's name are wrong
│   ├── RegistryOutdated     the database was migrated by a newer archiver
│   ├── RegistryNotMigrated  the database lacks migrations of this archiver, or is no registry
│   ├── RegistryBehind       the registry knows less than the table: rebuild it
│   ├── CoordinatorDeposed   (retryable) another node of `archiver serve kafka` coordinates the group
│   ├── OffsetBudgetReached  a client's groups keep as much as they may
│   ├── LogElsewhere         another write-ahead log may have rows of the topic that the table lacks
│   ├── LogAbandoned         a write-ahead log that was given up: its rows are recorded as lost
│   ├── RewriteRefused       the new files would not hold the records of the old ones
│   ├── RecordsHeld          a legal hold is on records that were to be removed
│   ├── MetadataRefused      metadata of records that can't be set now
│   ├── WouldBecomeRaw       a topic has a schema, and it is to be archived without one
│   ├── ColumnsMoved         (retryable) another process made a schema version since the topic was opened
│   ├── TopicRecreated       the topic was deleted and made again under its name
│   └── TableTaken           two topics would share one table
└── TableError               the catalog's tables
    ├── CatalogUnreachable   (retryable) no answer, an answer without a result, or other commits always come first
    ├── CatalogDenied        credentials or rights are wrong
    ├── CatalogRefused       the catalog understood the request and will not do it
    │   └── ViewsUnsupported     it has tables only
    ├── NotOurView           a view of this name exists that the archiver didn't make for this topic
    ├── MetadataUnwritable   (retryable) the store didn't take a manifest
    ├── MetadataDamaged      a manifest, or a list of them, was cut short or can't be read
    ├── PartitionAhead       (retryable) what is staged of a partition begins after what the table has of it
    ├── NotOurTable          the table belongs to another topic, or is not an archive
    │   └── PartitioningChanged  it is not partitioned any more as files were written for it
    ├── UnfitPartitioning    the table can't be partitioned as configured
    ├── UnnamedType          SQL has no name for a column's type
    ├── NewerFormat          the table was written by a newer archiver
    ├── FormatUpgraded       another engine upgraded the table to a format or column type that isn't supported
    ├── FilesShared          `gc.enabled` is false: another table may share the files, so none is deleted
    ├── RolledBack           the table was set back to a state before our last commit
    ├── RowsRemoved          another engine took archived rows out of the table
    ├── RowsAltered          another engine changed archived rows, or added rows with their offsets
    ├── TableMissing         the table a commit belongs to is gone
    └── SchemaConflict       the table's columns were changed so that ours no longer fit
"""

from __future__ import annotations

from typing import ClassVar

from schema_mapping.errors import ContextError


class CatalogError(ContextError): ...


class RegistryError(CatalogError): ...


class RegistryUnreachable(RegistryError):
    retryable: ClassVar[bool] = True


class RegistryMisnamed(RegistryError): ...


class RegistryPooled(RegistryError): ...


class RegistryDenied(RegistryError): ...


class RegistryOutdated(RegistryError): ...


class RegistryNotMigrated(RegistryError): ...


class RegistryBehind(RegistryError):
    """Also if the catalog has another table."""


class CoordinatorDeposed(RegistryError):
    retryable: ClassVar[bool] = True


class OffsetBudgetReached(RegistryError): ...


class LogElsewhere(RegistryError): ...


class LogAbandoned(RegistryError): ...


class RewriteRefused(RegistryError): ...


class RecordsHeld(RegistryError): ...


class MetadataRefused(RegistryError): ...


class WouldBecomeRaw(RegistryError): ...


class ColumnsMoved(RegistryError):
    retryable: ClassVar[bool] = True


class TopicRecreated(RegistryError):
    """The topic id changed: offsets mean other records now."""


class TableTaken(RegistryError): ...


class TableError(CatalogError): ...


class CatalogUnreachable(TableError):
    retryable: ClassVar[bool] = True


class CatalogDenied(TableError): ...


class CatalogRefused(TableError): ...


class ViewsUnsupported(CatalogRefused): ...


class NotOurView(TableError): ...


class MetadataUnwritable(TableError):
    retryable: ClassVar[bool] = True


class MetadataDamaged(TableError): ...


class PartitionAhead(TableError):
    """The ranges stay staged."""

    retryable: ClassVar[bool] = True


class NotOurTable(TableError): ...


class PartitioningChanged(NotOurTable): ...


class UnfitPartitioning(TableError): ...


class UnnamedType(TableError): ...


class NewerFormat(TableError): ...


class RowsAltered(TableError):
    """Archiving continues."""


class TableMissing(TableError): ...


class FormatUpgraded(TableError): ...


class FilesShared(TableError): ...


class RolledBack(TableError): ...


class RowsRemoved(TableError):
    """Archiving continues."""


class SchemaConflict(TableError): ...
