"""Checks of the catalog and the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from archiver.config import Config
from archiver.errors import CheckFailed
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.iceberg.scratch_table import ScratchTable
from catalog.model import new_id
from schema_mapping.errors import ContextError

CATALOG = "Catalog"
STORE = "Store"
_CONTENT = b"archiver check"


def look_at_tables(config: Config, *, seconds: float) -> Iterator[Finding]:
    """A scratch table in each namespace, and an object with its credentials."""
    for namespace in config.namespaces:
        yield from _look_at(config, namespace, seconds=seconds)


def _look_at(config: Config, namespace: str, *, seconds: float) -> Iterator[Finding]:
    name = f"archiver_check_{new_id().lower()}"
    subject = f"namespace {namespace}"
    scratch = ScratchTable(config.catalog, namespace=namespace, name=name, timeout_seconds=seconds)
    try:
        try:
            scratch.connect()
            creation = scratch.create()
            rows = scratch.write_and_read()
            if rows != 1:
                raise CheckFailed("The scratch table was written to, and its row wasn't there to read", rows=rows)
            store, location = ObjectStore.of_table(scratch.table), scratch.location
        except ContextError as error:
            yield failure(CATALOG, error, subject)
            return
        how = "" if creation.is_staged else " (without staged creation: made empty, then changed by one commit)"
        yield Finding(part=CATALOG, subject=subject, detail=f"a scratch table was created{how}, written to and read")
        if creation.refused_order is not None:
            detail = (
                "the catalog refuses sort orders of fields inside a struct, so tables have none. Archiving and replay"
                f" don't need them ({creation.refused_order})"
            )
            yield Finding(part=CATALOG, subject=subject, outcome=CheckOutcome.WARNING, detail=detail)
        yield _stored(
            store, f"{location}/data/{name}", f"warehouse, {location.rpartition('/')[0]}", OwnFolder(location)
        )
    finally:
        was_made, left = scratch.is_made, _removed(scratch)
        if left is not None:
            yield failure(CATALOG, left, subject)
        elif was_made:
            yield Finding(part=CATALOG, subject=subject, detail="the scratch table was dropped, with its files")


def _removed(scratch: ScratchTable) -> ContextError | None:
    """Also remove objects and new namespaces."""
    dropped = _dropped(scratch) if scratch.is_made else None
    left = scratch.leave()
    return dropped or left


def _dropped(scratch: ScratchTable) -> ContextError | None:
    try:
        store, location = ObjectStore.of_table(scratch.table), scratch.location
        scratch.drop()
        if scratch.name not in location and str(scratch.table.metadata.table_uuid) not in location:
            raise CheckFailed(
                "The scratch table was dropped, but its folder may be shared, so its files were left. Delete"
                " those of the scratch table if no other table uses the folder",
                location=location,
            )
        for file in store.list(location):
            store.delete(file.path, OwnFolder(location))
    except ContextError as error:
        return error
    return None


def look_at_journal(config: Config) -> Iterator[Finding]:
    journal = Journal.of(config)
    if journal.root is None:
        yield Finding(part=STORE, subject="journal", outcome=CheckOutcome.SKIPPED, detail="none is configured")
        return
    yield _stored(
        journal.objects, f"{journal.root}/check-{new_id()}", f"journal, {journal.root}", OwnFolder(journal.root)
    )


def _stored(store: ObjectStore, path: str, subject: str, permit: OwnFolder) -> Finding:
    try:
        store.write(path, _CONTENT)
        content = store.read(path)
        store.delete(path, permit)
        if content != _CONTENT:
            raise CheckFailed("The object that was written has other bytes when it is read", file=path)
        if store.exists(path):
            raise CheckFailed("The object was deleted, and is still there", file=path)
    except ContextError as error:
        with suppress(ContextError):
            store.delete(path, permit)
        return failure(STORE, error, subject)
    return Finding(part=STORE, subject=subject, detail="an object was written, read and deleted")
