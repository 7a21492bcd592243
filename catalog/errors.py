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
    """No answer, a lost connection, a lock timeout, or a deadlock."""

    retryable: ClassVar[bool] = True


class RegistryMisnamed(RegistryError):
    """An invalid dsn. No server was contacted."""


class RegistryPooled(RegistryError):
    """A pooler shares sessions between clients."""


class RegistryDenied(RegistryError):
    """User, password, right or database name is wrong."""


class RegistryOutdated(RegistryError):
    """The database has migrations unknown to this archiver."""


class RegistryNotMigrated(RegistryError):
    """Migrations are missing; readers don't apply them."""


class RegistryBehind(RegistryError):
    """The table is newer than the registry, or another table."""


class CoordinatorDeposed(RegistryError):
    """Offsets of a node that no longer coordinates. Nothing was stored."""

    retryable: ClassVar[bool] = True


class OffsetBudgetReached(RegistryError):
    """Names owner and budget. Nothing was stored."""


class LogElsewhere(RegistryError):
    """Names both logs. Nothing was changed."""


class LogAbandoned(RegistryError):
    """Names the log. Nothing was changed."""


class RewriteRefused(RegistryError):
    """New files differ in offsets, number or digest of records."""


class RecordsHeld(RegistryError):
    """Names hold and offsets. Nothing was changed."""


class WouldBecomeRaw(RegistryError): ...


class ColumnsMoved(RegistryError):
    """Another process made a schema version. Nothing was stored."""

    retryable: ClassVar[bool] = True


class TopicRecreated(RegistryError):
    """The topic id changed: offsets mean other records now."""


class TableTaken(RegistryError): ...


class TableError(CatalogError): ...


class CatalogUnreachable(TableError):
    """No answer, an unclear one, or other commits before each attempt."""

    retryable: ClassVar[bool] = True


class CatalogDenied(TableError):
    """Wrong credentials, or a missing right on catalog, table or storage."""


class CatalogRefused(TableError):
    """The catalog understood the request and won't do it."""


class ViewsUnsupported(CatalogRefused): ...


class NotOurView(TableError):
    """Nothing was changed."""


class MetadataUnwritable(TableError):
    """The store refused a manifest. Nothing was committed."""

    retryable: ClassVar[bool] = True


class MetadataDamaged(TableError):
    """A truncated or unreadable manifest or list. Names the file and what it lacks."""


class PartitionAhead(TableError):
    """Names both offsets. The ranges stay staged."""

    retryable: ClassVar[bool] = True


class NotOurTable(TableError):
    """Of another topic or cluster, or not made by the archiver."""


class PartitioningChanged(NotOurTable):
    """The partition values of the archiver's files have another meaning now."""


class UnfitPartitioning(TableError):
    """Names the term and the reason."""


class UnnamedType(TableError):
    """SQL can't create the type. Names the column."""


class NewerFormat(TableError):
    """`archiver.format-version` is above this archiver's."""


class RowsAltered(TableError):
    """Archived rows changed or duplicated by other engines. Archiving continues."""


class TableMissing(TableError): ...


class FormatUpgraded(TableError):
    """An Iceberg format that isn't written, or an unreadable type."""


class FilesShared(TableError):
    """`gc.enabled` is false. Nothing was deleted."""


class RolledBack(TableError):
    """Names the lost offsets."""


class RowsRemoved(TableError):
    """Names the offsets. Archiving continues."""


class SchemaConflict(TableError): ...
