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


class CatalogError(ContextError):
    """Root of what `catalog` raises."""


class RegistryError(CatalogError):
    """The registry in Postgres did not do what was asked of it."""


class RegistryUnreachable(RegistryError):
    """No server answers, or it ended the connection, timed out on a lock or chose the call as a deadlock's victim."""

    retryable: ClassVar[bool] = True


class RegistryMisnamed(RegistryError):
    """The dsn is no connection string of Postgres. No server was asked."""


class RegistryPooled(RegistryError):
    """A connection pooler doesn't keep a session of the server for each of its clients."""


class RegistryDenied(RegistryError):
    """The server answers, but the user, the password, a right or the database's name is wrong."""


class RegistryOutdated(RegistryError):
    """The database carries migrations that this archiver does not know."""


class RegistryNotMigrated(RegistryError):
    """The database lacks migrations that this archiver knows, and a reader doesn't apply them."""


class RegistryBehind(RegistryError):
    """The table is ahead of the registry, or another table than the one the registry knows."""


class CoordinatorDeposed(RegistryError):
    """Offsets of a group came from a node that doesn't coordinate it any more. Nothing was kept."""

    retryable: ClassVar[bool] = True


class OffsetBudgetReached(RegistryError):
    """Offsets would take more than their owner's groups may keep. Names the owner and its budget. Nothing was kept."""


class RewriteRefused(RegistryError):
    """A rewrite's new files don't have the offsets, the number or the digest of the old files' records."""


class RecordsHeld(RegistryError):
    """A legal hold is on records that were to be removed. Names the hold and the offsets. Nothing was changed."""


class WouldBecomeRaw(RegistryError):
    """The topic is archived with a schema, and its keys or values are to be archived without one from now on."""


class ColumnsMoved(RegistryError):
    """Another process made a schema version of the topic since its columns were chosen. Nothing was stored."""

    retryable: ClassVar[bool] = True


class TopicRecreated(RegistryError):
    """The topic has another id: it was deleted and created again, and its offsets mean other records now."""


class TableTaken(RegistryError):
    """Another topic has this table, or this topic has another table."""


class TableError(CatalogError):
    """An Iceberg table or its catalog did not do what was asked of it."""


class CatalogUnreachable(TableError):
    """The catalog gave no answer or an unclear one, or others committed before each of our attempts."""

    retryable: ClassVar[bool] = True


class CatalogDenied(TableError):
    """The credentials are wrong, or lack a right on the catalog, the table or its storage."""


class CatalogRefused(TableError):
    """The catalog understood the request and will not do it."""


class ViewsUnsupported(CatalogRefused):
    """The catalog offers no views."""


class NotOurView(TableError):
    """A view of this name exists that the archiver didn't make for this topic. Nothing was changed."""


class MetadataUnwritable(TableError):
    """The object store did not take a manifest; nothing was committed."""

    retryable: ClassVar[bool] = True


class MetadataDamaged(TableError):
    """A manifest, or a list of them, was cut short or can't be read. Names the file and what it lacks."""


class PartitionAhead(TableError):
    """What is staged of a partition begins after what the table has of it. Names both offsets. It stays staged."""

    retryable: ClassVar[bool] = True


class NotOurTable(TableError):
    """The table belongs to another topic or cluster, or was not made by the archiver."""


class PartitioningChanged(NotOurTable):
    """Others changed the table's partitioning, so the partition values of our files have another meaning."""


class UnfitPartitioning(TableError):
    """A table can't be partitioned as configured. Names the term and says why."""


class UnnamedType(TableError):
    """No statement of SQL can make a column of this type. Names the column."""


class NewerFormat(TableError):
    """The table's `archiver.format-version` is above what this archiver writes."""


class RowsAltered(TableError):
    """Others changed archived rows, or added rows with their offsets. Names these. Archiving goes on."""


class TableMissing(TableError):
    """The table that was there is gone."""


class FormatUpgraded(TableError):
    """Others upgraded the table to a format of Iceberg that isn't written, or added a type that can't be read."""


class FilesShared(TableError):
    """The table's `gc.enabled` is false: other tables may read its files. Nothing was deleted."""


class RolledBack(TableError):
    """Others set the table back to a state before our last commit. Names the offsets that it lost."""


class RowsRemoved(TableError):
    """Others removed archived rows from the table. Names their offsets. Archiving goes on."""


class SchemaConflict(TableError):
    """The table's columns were changed by others so that ours no longer fit."""
