"""Which messages the ids in envelopes stand for: a value that travels to tasks and asks the registry when it must."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from archiver.schemas.registered import Indexes
from archiver.schemas.registry import RegistrySettings, SchemaRegistry


class SchemaIds(Protocol):
    """What an envelope's schema id and message indexes mean."""

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """Full names that they may stand for, empty where the schema has no such message, None for an unknown id.

        Raises the leaves of SchemaRegistryError where the registry can't say.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryIds:
    """The ids of a schema registry; in a process all values with the same settings share what was asked."""

    settings: RegistrySettings

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """Full names that they may stand for."""
        schema = _client(self.settings).by_id(schema_id)
        return None if schema is None else schema.messages_at(indexes)


@lru_cache(maxsize=8)
def _client(settings: RegistrySettings) -> SchemaRegistry:
    return SchemaRegistry(settings)
