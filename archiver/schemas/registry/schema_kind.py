"""The seam between schema registries and formats: kinds of schemas, their names, and how texts are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

from catalog.model import SchemaNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema as the schema registry keeps it, by the id or GUID that it was looked up by.

    `references` has all schemas that it refers to, directly or not, by the names that it uses for them.
    """

    id: SchemaNumber
    text: str
    references: Mapping[str, str]


class NumberedSchema(Protocol):
    """A registered schema that its format has read."""

    @property
    def id(self) -> SchemaNumber:
        """The id or GUID that it was looked up by."""

    def to_bytes(self) -> bytes:
        """The schema as it is kept in Postgres and sent to tasks. `SchemaKind.from_bytes` makes an equal one of it."""


SchemaT = TypeVar("SchemaT", bound=NumberedSchema)
SchemaT_co = TypeVar("SchemaT_co", bound=NumberedSchema, covariant=True)


class SchemaKind(Protocol[SchemaT_co]):
    """A kind of schemas: the name that registries have for it, and how a format reads them. These objects pickle."""

    @property
    def name(self) -> str:
        """The `schemaType` of registries, such as PROTOBUF."""

    @property
    def label(self) -> str:
        """The name for people, such as Protobuf."""

    @property
    def other_form(self) -> str | None:
        """A form (`format` in requests) to request if the schema's text can't be read. None if there is no other."""

    def is_other_form(self, text: str) -> bool:
        """Whether a registry's answer has the other form. Registries that don't know it return the text again."""

    def replacement(self, number: SchemaNumber) -> SchemaT_co | None:
        """The schema that the configuration puts in place of this id or GUID. None if the registry's counts."""

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> SchemaT_co:
        """Read a schema with its references. Raises BadSchema, with the id, if it can't be read.

        Read it `leniently`, as Kafka's clients do, if that changes nothing about the meaning of bytes.
        """

    def from_bytes(self, number: SchemaNumber, data: bytes) -> SchemaT_co | None:
        """The schema that `to_bytes` wrote. None if another kind wrote it: the bytes must show which kind they are."""


def number_context(number: SchemaNumber) -> dict[str, int | str]:
    """An id or GUID as the context of an error."""
    return {"schema_guid": str(number)} if isinstance(number, UUID) else {"schema_id": number}
