"""Create tables in two steps, or empty and then by one commit without staged creation.

AWS Glue answers 400 "Stage create is not supported", RustFS 406 (rustfs/rustfs#7901), other catalogs 501. Until the
commit, readers may see other field ids.

If the catalog refuses the sort order, tables have none: Nessie before 0.102 finds no fields in structs
(projectnessie/nessie#10237).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pyiceberg import exceptions
from pyiceberg.schema import Schema, index_by_name
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from catalog.errors import CatalogRefused, NotOurTable
from catalog.iceberg.creation import TABLE_FORMAT
from catalog.iceberg.properties import PREFIX
from schema_mapping.columns.ledger import LAST_FIXED_ID

_REFUSALS: Final = frozenset({400, 405, 406, 422, 501})
"""Statuses by which catalogs refuse staged creation. If they mean something else, they refuse the plain table too."""
_FAILURES: Final = frozenset({500, 503})
_UNSUPPORTED: Final = re.compile(r"Unsupported|NotImplemented|not (?:supported|implemented)", re.IGNORECASE)
"""The error's text when a catalog doesn't map its refusal to a status."""
_ORDER: Final = re.compile(r"sort.?(?:order|field)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """`refused_order` is the catalog's refusal of the sort order."""

    is_staged: bool
    refused_order: Exception | None


class Definition(Protocol):
    @property
    def schema(self) -> Schema: ...

    def creating(self, staged: TableMetadata, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        """Return the updates from the catalog's proposal."""

    def completing(self, plain: TableMetadata, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        """Return the updates from an empty table."""


class CommittingCatalog(Protocol):
    def create_table_transaction(self, identifier: str, schema: Schema) -> Any: ...

    def create_table(self, identifier: str, schema: Schema) -> Table:
        """With the catalog's field ids."""

    def send_commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> object: ...


def create_table(
    catalog: CommittingCatalog, name: str, definition: Definition, *, makes_plain: Callable[[], None] = lambda: None
) -> Creation:
    """Raises pyiceberg's exceptions. `makes_plain` is called before a plain table may exist."""
    try:
        staged = catalog.create_table_transaction(name, definition.schema)._table  # noqa: SLF001
    except (exceptions.RESTError, NotImplementedError) as error:
        if not refuses_staging(error):
            raise
        makes_plain()
        plain = catalog.create_table(name, definition.schema)
        return Creation(is_staged=False, refused_order=complete(catalog, plain, definition))

    def send(*, is_sorted: bool) -> None:
        catalog.send_commit(staged, (AssertCreate(),), definition.creating(staged.metadata, is_sorted=is_sorted))

    return Creation(is_staged=True, refused_order=_send_with_order(send))


class _Send(Protocol):
    def __call__(self, *, is_sorted: bool) -> None: ...


def _send_with_order(send: _Send) -> Exception | None:
    """Retry without a refused sort order; return the refusal, or raise it if the retry is refused."""
    try:
        send(is_sorted=True)
    except (exceptions.RESTError, NotImplementedError) as refusal:
        if not refuses_order(refusal):
            raise
        try:
            send(is_sorted=False)
        except (exceptions.RESTError, NotImplementedError) as second:
            if refuses_order(second):
                raise refusal from second
            raise
        return refusal
    return None


def refuses_order(error: Exception) -> bool:
    if _ORDER.search(str(error)):
        return True
    return _status(error) in _REFUSALS and not isinstance(error, exceptions.CommitStateUnknownException)


def refuses_staging(error: Exception) -> bool:
    status = _status(error)
    return status in _REFUSALS or (status in _FAILURES and bool(_UNSUPPORTED.search(str(error))))


def _status(error: Exception) -> int | None:
    return getattr(getattr(error.__cause__, "response", None), "status_code", None)


def complete(catalog: CommittingCatalog, table: Table, definition: Definition) -> Exception | None:
    """The commit fails after any change of the table. Returns the refusal of the sort order.

    Raises NotOurTable if the table isn't empty or its columns differ.
    """
    metadata = table.metadata
    if (reason := unfit_reason(metadata, definition.schema)) is not None:
        raise NotOurTable(
            f"the table exists and was not made by the archiver. It can't be taken over: {reason}. Choose another"
            " `table` for the topic, or drop this one",
            table=".".join(table.name()),
            table_uuid=str(metadata.table_uuid),
        )
    requirements = (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": None}),
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
    )

    def send(*, is_sorted: bool) -> None:
        catalog.send_commit(table, requirements, definition.completing(metadata, is_sorted=is_sorted))

    return _send_with_order(send)


def check_field_ids(table: Table, schema: Schema, *, is_made: bool = True) -> None:
    """Raise CatalogRefused if a new table's columns have other field ids than the schema: files would be misread.

    Only fixed ids count unless `is_made` from this schema: columns may have been renamed since.
    """
    metadata = table.metadata
    if metadata.snapshots:
        return
    columns, expected = index_by_name(metadata.schema()), index_by_name(schema)
    compared = [name for name in expected if name in columns and (is_made or expected[name] <= LAST_FIXED_ID)]
    changed = next((name for name in compared if columns[name] != expected[name]), None)
    if changed is not None:
        raise CatalogRefused(
            f"the catalog gave the table's columns other field ids: {changed} has {columns[changed]} instead of"
            f" {expected[changed]}. Files name their columns by these ids, so the archiver can't use this catalog. The"
            " table has no records: it can be dropped",
            table=".".join(table.name()),
            table_uuid=str(metadata.table_uuid),
        )


def unfit_reason(metadata: TableMetadata, schema: Schema) -> str | None:
    return blemish(metadata) or _difference(metadata.schema().as_struct(), schema.as_struct(), "")


def blemish(metadata: TableMetadata) -> str | None:
    """None if the table is empty and plain. Ignores columns."""
    ours = sorted(name for name in metadata.properties if name.startswith(PREFIX))
    version = metadata.format_version
    reasons = (
        (metadata.snapshots or metadata.refs or metadata.snapshot_log, "it has or had records"),
        (ours, f"it has the property {ours[0] if ours else ''}"),
        (version > TABLE_FORMAT, f"its format version is {version}; make it with 'format-version' = '{TABLE_FORMAT}'"),
        (
            any(spec.fields for spec in metadata.partition_specs),
            "it is partitioned; make it without PARTITIONED BY, the archiver partitions it",
        ),
        (
            any(order.fields for order in metadata.sort_orders),
            "it has a sort order; make it without one, the archiver sets it",
        ),
        (len(metadata.schemas) > 1, "its columns were changed since it was made"),
    )
    return next((text for is_so, text in reasons if is_so), None)


def _difference(found: IcebergType, expected: IcebergType, path: str) -> str | None:
    match found, expected:
        case StructType(), StructType():
            theirs, ours = ({field.name: field.field_type for field in kind.fields} for kind in (found, expected))
            if unknown := [name for name in theirs if name not in ours]:
                return f"its column {path}{unknown[0]} is none of the topic's"
            if missing := [name for name in ours if name not in theirs]:
                return f"it lacks the column {path}{missing[0]}"
            parts = [(theirs[name], ours[name], f"{path}{name}.") for name in ours]
        case ListType(), ListType():
            parts = [(found.element_type, expected.element_type, f"{path}element.")]
        case MapType(), MapType():
            parts = [
                (found.key_type, expected.key_type, f"{path}key."),
                (found.value_type, expected.value_type, f"{path}value."),
            ]
        case _:
            return None if found == expected else f"its column {path.rstrip('.')} is {found}, the topic's is {expected}"
    return next((reason for part in parts if (reason := _difference(*part)) is not None), None)
