"""Views in a REST catalog, replaced only if the archiver made them (Iceberg's view spec, version 1).

Properties name the topic and earlier column names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from pyiceberg.catalog.rest import Capability, Endpoints, IdentifierKind
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import CommitFailedException, NoSuchViewError, ViewAlreadyExistsError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.view import View
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion
from requests import HTTPError

from catalog.errors import CatalogRefused, NotOurView, ViewsUnsupported
from catalog.iceberg.properties import TOPIC
from catalog.iceberg.rest import BoundedRestCatalog, connect, in_our_words

COLUMN_NAMES: Final = "archiver.view-columns"
"""A view's property: the name of each column that it ever had, by the table's field id, as JSON."""

_LAST_ADDED: Final = -1
_ATTEMPTS: Final = 3


class Put(StrEnum):
    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDefinition:
    """`sql` is by dialect, `column_names` by the table's field ids.

    Tables are resolved in `tables_in`, a namespace of the view's catalog.
    """

    topic: str
    schema: Schema
    sql: Mapping[str, str]
    tables_in: tuple[str, ...]
    column_names: Mapping[int, str]


class ViewCatalog:
    """Opening raises ViewsUnsupported."""

    def __init__(self, properties: Mapping[str, str], *, timeout_seconds: float = 60.0) -> None:
        self._uri = properties.get("uri", "")
        self._rest: BoundedRestCatalog = connect(properties, timeout_seconds=timeout_seconds)
        if Capability.V1_LOAD_VIEW not in self._rest._supported_endpoints:  # noqa: SLF001 - not asked elsewhere
            self._rest.close()
            raise ViewsUnsupported(
                "the catalog doesn't offer views: make this one in an engine, from the statement that `archiver views`"
                " prints without --apply. Spark: with --temporary, or in a catalog of Spark's that keeps views. Trino:"
                " in a catalog that keeps views, by --catalog and --namespace",
                catalog=self._uri,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rest.close()

    def column_names(self, name: tuple[str, ...], *, topic: str) -> dict[int, str]:
        """Earlier names by field id, empty without a view. Raises NotOurView for a foreign one."""
        with in_our_words(self._uri, ".".join(name)):
            view = self._load(name, topic)
        named = {} if view is None else json.loads(view.properties.get(COLUMN_NAMES, "{}"))
        return {int(number): str(column) for number, column in named.items()}

    def put(self, name: tuple[str, ...], definition: ViewDefinition) -> Put:
        """Replaces a different view. Raises NotOurView and TableError."""
        with in_our_words(self._uri, ".".join(name)):
            for _ in range(_ATTEMPTS):
                view = self._load(name, definition.topic)
                try:
                    return self._create(name, definition) if view is None else self._replace(view, definition)
                except (ViewAlreadyExistsError, NoSuchViewError, CommitFailedException) as error:
                    last = error  # somebody was faster, or a table has the name
            raise CatalogRefused(
                f"the catalog refused the view: {last}. If a table has this name, choose another by --name",
                catalog=self._uri,
                view=".".join(name),
            )

    def _load(self, name: tuple[str, ...], topic: str) -> View | None:
        try:
            view: View = self._rest.load_view(name)
        except NoSuchViewError:
            return None
        if view.properties.get(TOPIC) != topic or COLUMN_NAMES not in view.properties:
            raise NotOurView(
                "a view of this name exists, and the archiver didn't make it for this topic: choose another name by"
                " --name, or drop that view",
                view=".".join(name),
                topic=topic,
                topic_of_view=view.properties.get(TOPIC),
            )
        return view

    def _create(self, name: tuple[str, ...], definition: ViewDefinition) -> Put:
        version = _version(definition, 1, 0)
        self._rest.create_view(name, definition.schema, version, properties=_properties(definition))
        return Put.CREATED

    def _replace(self, view: View, definition: ViewDefinition) -> Put:
        if _is_defined_so(view, definition):
            return Put.UNCHANGED
        number = 1 + max(version.version_id for version in view.versions)
        schema = assign_fresh_schema_ids(definition.schema)
        self._post(
            view.name(),
            {
                "identifier": {"namespace": view.name()[:-1], "name": view.name()[-1]},
                "requirements": [{"type": "assert-view-uuid", "uuid": str(view.uuid())}],
                "updates": [
                    {
                        "action": "add-schema",
                        "schema": schema.model_dump(mode="json"),
                        "last-column-id": schema.highest_field_id,
                    },
                    {
                        "action": "add-view-version",
                        "view-version": _version(definition, number, _LAST_ADDED).model_dump(mode="json"),
                    },
                    {"action": "set-current-view-version", "view-version-id": _LAST_ADDED},
                    {"action": "set-properties", "updates": _properties(definition)},
                ],
            },
        )
        return Put.REPLACED

    def _post(self, name: tuple[str, ...], request: dict[str, Any]) -> None:
        """Commit by REST: pyiceberg's client can't change a view."""
        rest = self._rest
        path = rest._split_identifier_for_path(name, IdentifierKind.VIEW)  # noqa: SLF001
        response = rest.session.post(rest.url(Endpoints.load_view, **path), data=json.dumps(request).encode())
        try:
            response.raise_for_status()
        except HTTPError as error:
            _handle_non_200_response(error, {404: NoSuchViewError, 409: CommitFailedException})


def _properties(definition: ViewDefinition) -> dict[str, str]:
    named = {str(number): name for number, name in sorted(definition.column_names.items())}
    return {TOPIC: definition.topic, COLUMN_NAMES: json.dumps(named, separators=(",", ":"), ensure_ascii=False)}


def _version(definition: ViewDefinition, number: int, schema_id: int) -> ViewVersion:
    texts = (SQLViewRepresentation(type="sql", sql=text, dialect=name) for name, text in definition.sql.items())
    return ViewVersion.model_validate(
        {
            "version-id": number,
            "schema-id": schema_id,
            "timestamp-ms": int(time.time() * 1000),
            "summary": {"engine-name": "archiver"},
            "representations": [ViewRepresentation(root=text) for text in texts],
            "default-namespace": definition.tables_in,
        }
    )


def _is_defined_so(view: View, definition: ViewDefinition) -> bool:
    sql = {
        representation.root.dialect: representation.root.sql
        for representation in view.current_version().representations
    }
    columns = assign_fresh_schema_ids(definition.schema).fields
    same_properties = _properties(definition).items() <= view.properties.items()
    return sql == dict(definition.sql) and view.schema().fields == columns and same_properties
