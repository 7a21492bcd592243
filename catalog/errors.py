"""The error tree of `catalog`: the registry in Postgres and the Iceberg tables.

CatalogError
├── RegistryError            Postgres
│   ├── RegistryUnreachable  (retryable) nobody answers, or the server gave up on the call
│   ├── RegistryMisnamed     the dsn can't be read; nobody was asked
│   ├── RegistryPooled       a pooler gives away the server's sessions between transactions
│   ├── RegistryDenied       credentials, rights or the database's name are wrong
│   ├── RegistryOutdated     the database was migrated by a newer archiver
│   ├── RegistryNotMigrated  the database lacks migrations of this archiver, or is no registry
│   ├── RegistryBehind       the registry knows less than the table: rebuild it
│   ├── CoordinatorDeposed   (retryable) another node of `archiver serve kafka` coordinates the group
│   ├── OffsetBudgetReached  a client's groups keep as much as they may
│   ├── RewriteRefused       the new files would not hold the records of the old ones
│   ├── RecordsHeld          a legal hold is on records that were to be removed
│   ├── WouldBecomeRaw       a topic has a schema, and it is to be archived without one
│   ├── ColumnsMoved         (retryable) another process made a schema version since the topic was opened
│   ├── TopicRecreated       the topic was deleted and made again under its name
│   └── TableTaken           two topics would share one table
└── TableError               the catalog's tables
    ├── CatalogUnreachable   (retryable) nobody answers, the answer says nothing, or others always come first
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
    ├── FormatUpgraded       others gave the table a format or a column type of Iceberg that can't be written or read
    ├── FilesShared          `gc.enabled` is false: another table may share the files, so none is deleted
    ├── RolledBack           the table was set back to a state before our last commit
    ├── RowsRemoved          others took archived rows out of the table
    ├── RowsAltered          others changed archived rows, or added rows with their offsets
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


class RegistryMisnamed(RegistryError): ...


class RegistryPooled(RegistryError): ...


class RegistryDenied(RegistryError): ...


class RegistryOutdated(RegistryError): ...


class RegistryNotMigrated(RegistryError): ...


class RegistryBehind(RegistryError): ...


class CoordinatorDeposed(RegistryError):
    retryable: ClassVar[bool] = True


class OffsetBudgetReached(RegistryError): ...


class RewriteRefused(RegistryError): ...


class RecordsHeld(RegistryError): ...


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


class NotOurView(TableError):
    """Nothing was changed."""


class MetadataUnwritable(TableError):
    retryable: ClassVar[bool] = True


class MetadataDamaged(TableError):
    """Names the file and what it lacks."""


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


class NewerFormat(TableError): ...


class RowsAltered(TableError): ...


class TableMissing(TableError): ...


class FormatUpgraded(TableError): ...


class FilesShared(TableError): ...


class RolledBack(TableError):
    """Names the lost offsets."""


class RowsRemoved(TableError): ...


class SchemaConflict(TableError): ...
