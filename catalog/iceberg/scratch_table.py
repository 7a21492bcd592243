"""A table made and dropped to test the catalog: one column, and the sort order's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError, RESTError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType

from catalog.errors import CatalogDenied, TableError
from catalog.iceberg.creation import UPGRADE, schema_updates, sort_order
from catalog.iceberg.rest import BoundedRestCatalog, connect, in_our_words
from catalog.iceberg.table_creation import Creation, check_field_ids, create_table, refuses_staging
from schema_mapping import names

_COLUMN: Final = "note"
_PROPERTIES: Final = {"archiver.check": "true"}
_KAFKA: Final = StructType(
    NestedField(field_id=11, name=names.PARTITION, field_type=IntegerType(), required=False),
    NestedField(field_id=12, name=names.OFFSET, field_type=LongType(), required=False),
)
_SCHEMA: Final = Schema(
    NestedField(field_id=9, name=_COLUMN, field_type=StringType(), required=False),
    NestedField(field_id=10, name=names.KAFKA, field_type=_KAFKA, required=False),
)


@dataclass(frozen=True, slots=True)
class _NoteTable:
    schema: Schema = _SCHEMA

    def creating(self, staged: TableMetadata, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        unsorted = AddSortOrderUpdate.model_validate({"sort-order": UNSORTED_SORT_ORDER})
        return (
            AssignUUIDUpdate(uuid=staged.table_uuid),
            UPGRADE,
            AddSchemaUpdate(schema=self.schema),
            SetCurrentSchemaUpdate(),
            AddPartitionSpecUpdate(spec=UNPARTITIONED_PARTITION_SPEC),
            SetDefaultSpecUpdate(),
            unsorted,
            SetDefaultSortOrderUpdate(),
            *self._order(is_sorted=is_sorted),
            SetLocationUpdate(location=staged.location),
            SetPropertiesUpdate(updates=_PROPERTIES),
        )

    def completing(self, plain: TableMetadata, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        order = self._order(is_sorted=is_sorted)
        return (UPGRADE, *schema_updates(plain, self.schema), *order, SetPropertiesUpdate(updates=_PROPERTIES))

    def _order(self, *, is_sorted: bool) -> tuple[TableUpdate, ...]:
        return (AddSortOrderUpdate.model_validate({"sort-order": sort_order(self.schema)}),) if is_sorted else ()


class ScratchTable:
    """Call `connect`, then `create` and `drop`, and `leave` at the end."""

    def __init__(self, properties: Mapping[str, str], *, namespace: str, name: str, timeout_seconds: float) -> None:
        self.name: Final = name
        self._properties = properties
        self._namespace = namespace
        self._timeout_seconds = timeout_seconds
        self._rest: BoundedRestCatalog | None = None
        self._table: Table | None = None
        self._made: list[tuple[str, ...]] = []

    @property
    def is_made(self) -> bool:
        return self._table is not None

    @property
    def table(self) -> Table:
        assert self._table is not None
        return self._table

    @property
    def location(self) -> str:
        return str(self.table.metadata.location).rstrip("/")

    def connect(self) -> None:
        """Make missing namespaces. Raises TableError."""
        self._rest = connect(self._properties, timeout_seconds=self._timeout_seconds)
        with self._in_our_words():
            parts = tuple(self._namespace.split("."))
            for depth in range(1, len(parts) + 1):
                self._make(self._rest, parts[:depth])

    def create(self) -> Creation:
        """Raises TableError."""
        assert self._rest is not None
        name = f"{self._namespace}.{self.name}"
        with self._in_our_words():
            try:
                creation = create_table(self._rest, name, _NoteTable())
            except CatalogDenied:  # without keys the table can't be loaded, but it may have been made
                with suppress(TableError):
                    self.drop()
                raise
            finally:
                with suppress(Exception):  # what failed may have left the table
                    self._table = self._rest.load_table(name)
            self._table = self._rest.load_table(name)
            check_field_ids(self._table, _SCHEMA)
        return creation

    def proposes(self) -> bool:
        """Without staged creation, names can't be tried. Raises TableError."""
        assert self._rest is not None
        with self._in_our_words():
            try:
                self._rest.create_table_transaction(f"{self._namespace}.{self.name}", _SCHEMA)
            except (RESTError, NotImplementedError) as error:
                if not refuses_staging(error):
                    raise
                return False
        return True

    def try_name(self, name: str, *, proposes: bool = True) -> Mapping[str, str] | None:
        """Propose a missing table without making it; return an existing one's properties.

        Raises TableError if the name is refused.
        """
        assert self._rest is not None
        with in_our_words(self._properties.get("uri", ""), name):
            try:
                properties: Mapping[str, str] = self._rest.load_table(name).properties
            except NoSuchTableError:
                if proposes:
                    self._rest.create_table_transaction(name, _SCHEMA)
                return None
        return properties

    def _make(self, rest: BoundedRestCatalog, namespace: tuple[str, ...]) -> None:
        if rest.namespace_exists(namespace):
            return
        try:
            rest.create_namespace(namespace)
        except NamespaceAlreadyExistsError:
            return
        self._made.append(namespace)

    def write_and_read(self) -> int:
        """Return the number of rows. Raises TableError."""
        with self._in_our_words():
            self.table.append(pa.table({_COLUMN: ["archiver check"]}))
            assert self._rest is not None
            self._table = self._rest.load_table(self.table.name())
            return int(self._table.scan().to_arrow().num_rows)

    def drop(self) -> None:
        """The caller deletes the files. Raises TableError."""
        assert self._rest is not None
        with self._in_our_words():
            self._rest.drop_table(f"{self._namespace}.{self.name}")

    def leave(self) -> TableError | None:
        """Return the error that prevented it."""
        if self._rest is None:
            return None
        try:
            with self._in_our_words():
                while self._made:
                    self._rest.drop_namespace(self._made.pop())
        except TableError as error:
            return error
        finally:
            self._rest.close()
        return None

    def _in_our_words(self) -> AbstractContextManager[None]:
        return in_our_words(self._properties.get("uri", ""), f"{self._namespace}.{self.name}")
