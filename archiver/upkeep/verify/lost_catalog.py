"""Find a table without its catalog: the newest metadata file in the journal's folder.

It may be of a commit that never landed, so the report names it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import UUID

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from archiver.config import Config
from archiver.errors import NotArchived, StorageError, UpkeepError
from archiver.storage.journal import Journal
from archiver.storage.journal_survey import survey
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.properties import owner
from schema_mapping.errors import ContextError

NEWEST: Final = 32
"""So many of the last changed metadata files are read, for a store's clock isn't the writers'."""
_SUFFIX: Final = ".metadata.json"
_ZIPPED: Final = ".gz.metadata.json"


def find_table(config: Config, topic: str, metadata: str | None = None) -> ArchiveTable:
    """Raise NotArchived, StorageError, TableError, and UpkeepError if metadata can't be read."""
    settings, objects = config.topic(topic), ObjectStore.of(config.catalog)
    uuid: UUID | None = None
    if metadata is not None and metadata.endswith(_SUFFIX):
        chosen = metadata, _read(objects, metadata)
    else:
        folders = [metadata.rstrip("/")] if metadata is not None else []
        if not folders:
            uuid, folders = _from_journal(config, topic)
        chosen = _newest(objects, folders, uuid, topic)
    path, latest = chosen
    name = tuple(settings.table.split("."))
    table = Table(name, latest, path, objects.file_io(path), NoopCatalog("gone"))
    return ArchiveTable(topic=owner(latest.properties, topic=topic, table=settings.table), iceberg=table)


def _from_journal(config: Config, topic: str) -> tuple[UUID, list[str]]:
    """Return the UUID with the last commit, and folders of metadata."""
    table, journal = config.topic(topic).table, Journal.of(config)
    newest: dict[UUID, str] = {}
    if journal.root is not None:
        folder = f"{journal.root}/{table}/"
        for item in journal.objects.list(folder.rstrip("/")):
            head, _, name = item.path.removeprefix(folder).partition("/")
            if name.startswith("commit-") and (uuid := _uuid(head)) is not None:
                newest[uuid] = max(name, newest.get(uuid, ""))
    if not newest:
        raise NotArchived(
            "neither the catalog nor the journal knows a table of the topic: name its metadata file with --metadata",
            topic=topic,
            table=table,
            journal=journal.root,
        )
    uuid = max(newest, key=lambda item: newest[item])
    contents = survey(journal.named(table, uuid))
    paths = {file.path for _, commit in contents.commits for range_ in commit.ranges for file in range_.files}
    paths |= {path for _, commit in contents.commits if commit.rewrite for path in commit.rewrite.new_paths}
    return uuid, sorted({f"{path.rpartition('/data/')[0]}/metadata" for path in paths if "/data/" in path})


def _newest(objects: ObjectStore, folders: Iterable[str], uuid: UUID | None, topic: str) -> tuple[str, TableMetadata]:
    listed = [each for folder in folders for each in objects.list(folder) if each.name.endswith(_SUFFIX)]
    latest = sorted(listed, key=_age, reverse=True)[:NEWEST]

    def read(each: ListedObject) -> tuple[str, TableMetadata] | ContextError:
        try:
            return each.path, _read(objects, each.path)
        except ContextError as error:
            return error

    with ThreadPoolExecutor(8, thread_name_prefix="metadata") as pool:
        results = list(pool.map(read, latest))
    fitting = list(_of_table(results, uuid, topic))
    if not fitting:
        raise UpkeepError(
            "the catalog is gone, and the table's location has no metadata file of it that can be read: name one with"
            " --metadata",
            topic=topic,
            folders=list(folders),
            cause=next((str(each) for each in results if isinstance(each, ContextError)), None),
        )
    return max(fitting, key=lambda each: (_sequence(each[1]), each[1].last_updated_ms))


def _of_table(
    found: Iterable[tuple[str, TableMetadata] | ContextError], uuid: UUID | None, topic: str
) -> Iterator[tuple[str, TableMetadata]]:
    for result in found:
        if isinstance(result, ContextError) or (uuid is not None and result[1].table_uuid != uuid):
            continue
        if result[1].properties.get("archiver.topic") == topic:
            yield result


def _read(objects: ObjectStore, path: str) -> TableMetadata:
    data = objects.read(path)
    try:
        return TableMetadataUtil.parse_raw((gzip.decompress(data) if path.endswith(_ZIPPED) else data).decode())
    except (ValueError, OSError, EOFError) as error:
        raise StorageError("the metadata file can't be read: restore it from a backup", file=path) from error


def _sequence(metadata: TableMetadata) -> int:
    return getattr(metadata, "last_sequence_number", 0)


def _age(each: ListedObject) -> tuple[int, str]:
    return each.modified_ms or 0, each.name


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
