"""The interface between schema registries and formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

from catalog.model import SchemaNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """`references` are direct and indirect, by import name."""

    id: SchemaNumber
    text: str
    references: Mapping[str, str]


class NumberedSchema(Protocol):
    @property
    def id(self) -> SchemaNumber: ...

    def to_bytes(self) -> bytes: ...


SchemaT = TypeVar("SchemaT", bound=NumberedSchema)
SchemaT_co = TypeVar("SchemaT_co", bound=NumberedSchema, covariant=True)


class SchemaKind(Protocol[SchemaT_co]):
    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def other_form(self) -> str | None:
        """The `format` of a second request if the text can't be read."""

    def is_other_form(self, text: str) -> bool:
        """Some registries ignore the requested form."""

    def replacement(self, number: SchemaNumber) -> SchemaT_co | None: ...

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> SchemaT_co:
        """Raises BadSchema, with the id. `leniently`: as Kafka's clients do."""

    def from_bytes(self, number: SchemaNumber, data: bytes) -> SchemaT_co | None:
        """None if another kind wrote the bytes, which must show that."""


def number_context(number: SchemaNumber) -> dict[str, int | str]:
    return {"schema_guid": str(number)} if isinstance(number, UUID) else {"schema_id": number}
