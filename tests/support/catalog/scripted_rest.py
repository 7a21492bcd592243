"""A REST catalog in memory with scripted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import requests
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertCreate, update_table_metadata

from tests.support.catalog.table_changes import created


@dataclass
class Rest:
    """`script` decides the fate of the next requests."""

    folder: Path
    tables: dict[str, TableMetadata] = field(default_factory=dict)
    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    script: list[Callable[[Callable[[], Any]], Any]] = field(default_factory=list)
    asked_pause: Any = field(default_factory=lambda: SimpleNamespace(seconds=lambda: 0.0))
    is_closed: bool = False
    refusal: int | None = None
    renumbers: bool = False

    def load_table(self, name: str, known: Table | None = None) -> Table:
        if name not in self.tables:
            raise NoSuchTableError(name)
        return self._table(name, self.tables[name])

    def list_tables(self, namespace: str) -> list[tuple[str, ...]]:
        if (namespace,) not in self.namespaces:
            raise NoSuchNamespaceError(namespace)
        return [tuple(name.split(".")) for name in self.tables]

    def namespace_exists(self, namespace: tuple[str, ...]) -> bool:
        return namespace in self.namespaces

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        assert not namespace[1:] or namespace[:-1] in self.namespaces, "its parent comes first"
        self.namespaces.add(namespace)

    def create_table_transaction(self, name: str, schema: Schema) -> Any:
        assert tuple(name.split(".")[:-1]) in self.namespaces
        if self.refusal is not None:
            raise refused(self.refusal)
        location = (self.folder / name).as_uri()
        staged = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, {}, uuid4())
        return SimpleNamespace(_table=self._table(name, staged))

    def create_table(self, name: str, schema: Schema) -> Table:
        def make() -> Table:
            if name in self.tables:
                raise TableAlreadyExistsError(name)
            location = (self.folder / name).as_uri()
            order, spec = UNSORTED_SORT_ORDER, UNPARTITIONED_PARTITION_SPEC
            fresh = assign_fresh_schema_ids(schema)
            self.tables[name] = new_table_metadata(fresh, spec, order, location, {"made-by": "somebody"}, uuid4())
            return self.load_table(name)

        made: Table = self.script.pop(0)(make) if self.script else make()
        return made

    def commit_table(self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]) -> Any:
        name = ".".join(table.name())

        def make() -> Any:
            if name in self.tables and AssertCreate() not in requirements:
                self.tables[name] = update_table_metadata(self.tables[name], updates, enforce_validation=True)
                return SimpleNamespace(metadata=self.tables[name])
            if name in self.tables:
                raise CommitFailedException("it is there")
            made = created(updates)
            self.tables[name] = _renumbered(made) if self.renumbers else made
            return SimpleNamespace(metadata=self.tables[name])

        return self.script.pop(0)(make) if self.script else make()

    def send_commit(self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]) -> Any:
        done = self.commit_table(table, requirements, updates).metadata
        return SimpleNamespace(metadata=done, properties=done.properties if done else {}, metadata_files=[])

    def close(self) -> None:
        self.is_closed = True

    def _table(self, name: str, metadata: TableMetadata) -> Table:
        return Table(tuple(name.split(".")), metadata, "", PyArrowFileIO(), catalog=None)  # type: ignore[arg-type]


def _renumbered(made: TableMetadata) -> TableMetadata:
    """As in Nessie, the first schema's fields get new ids."""
    fresh = assign_fresh_schema_ids(made.schema())
    order, spec = UNSORTED_SORT_ORDER, UNPARTITIONED_PARTITION_SPEC
    return new_table_metadata(fresh, spec, order, made.location, dict(made.properties), made.table_uuid)


def refused(status: int) -> Exception:
    response = requests.Response()
    response.status_code = status
    response._content = b'{"error": {"message": "Stage create is not supported", "type": "E", "code": %d}}' % status
    try:
        _handle_non_200_response(requests.HTTPError(response=response), {})
    except Exception as error:  # noqa: BLE001 - each status has its own
        return error
    raise AssertionError


def lose_request(make: Callable[[], Any]) -> Any:
    raise requests.ConnectionError("never arrived")


def lose_answer(make: Callable[[], Any]) -> Any:
    make()
    raise requests.ReadTimeout("no answer")


def refuse_landed(make: Callable[[], Any]) -> Any:
    make()
    raise BadRequestError("CommitStateUnknownException: no answer from the database")


def refuse_with_status(make: Callable[[], Any]) -> Any:
    raise refused(400)


def refuse_landed_with_status(make: Callable[[], Any]) -> Any:
    make()
    raise refused(400)


def deny_landed(make: Callable[[], Any]) -> Any:
    make()
    raise ForbiddenError("the session is over")


def deny(make: Callable[[], Any]) -> Any:
    raise ForbiddenError("not yours")


def twice(make: Callable[[], Any]) -> Any:
    make()
    return make()


def say_so_only(make: Callable[[], Any]) -> Any:
    return SimpleNamespace(metadata=None)
