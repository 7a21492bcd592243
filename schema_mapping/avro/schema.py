"""Avro schemas as values: of one writer, or of several whose ids a topic's records name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from schema_mapping.avro.normal_text import fingerprint_of, normal_text
from schema_mapping.avro.read_schema import MOST_DEPTH, read_types
from schema_mapping.avro.types import AvroTypes
from schema_mapping.errors import DescriptorError

AVRO_FORMAT: Final = "avro"
MOST_WRITERS: Final = 256
_SHORT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroSchema:
    """The schemas that values are written with, the newest first. Schemas that mean the same are there once.

    `writers` are texts that need no other schemas. `envelope` is the envelope of the newest one, if a coerced replay
    adds envelopes.
    """

    writers: tuple[str, ...]
    envelope: bytes | None = None

    @classmethod
    def of(cls, *texts: str, references: tuple[str, ...] = (), envelope: bytes | None = None) -> Self:
        """The schema of texts that share references. Raises DescriptorError if one isn't an Avro schema."""
        writers = tuple(complete_text(text, references) for text in texts)
        return cls(writers=distinct(writers), envelope=envelope)

    @property
    def format(self) -> str:
        """The name of the format."""
        return AVRO_FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the writers' types; after an older writer's name stands the beginning of its fingerprint."""
        return message_names(self.writers)

    def to_json(self) -> dict[str, Any]:
        """A JSON object of the writers' normal texts."""
        return {"writers": [normal(text) for text in self.writers]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads a schema back from its `to_json`."""
        return cls(writers=tuple(data["writers"]))


def distinct(writers: tuple[str, ...]) -> tuple[str, ...]:
    """The writers, without repetitions of the same meaning."""
    return tuple({normal(text): text for text in reversed(writers)}[key] for key in dict.fromkeys(map(normal, writers)))


def complete_text(text: str, references: tuple[str, ...] = ()) -> str:
    """The text of a schema that needs no references: itself if there are none."""
    types = read_types(text, references)
    if not references:
        return text
    try:
        complete = normal_text(types)
    except RecursionError:
        raise DescriptorError("the Avro schema is nested too deeply with its references", most=MOST_DEPTH) from None
    read_types(complete)
    return complete


def message_names(writers: tuple[str, ...]) -> tuple[str, ...]:
    """A name for each writer, each once."""
    newest, *older = writers
    return (types_of(newest).name, *(f"{types_of(text).name}@{writer_fingerprint(text)[:_SHORT]}" for text in older))


@lru_cache(maxsize=512)
def types_of(text: str) -> AvroTypes:
    """The types of a complete text. Raises DescriptorError if it isn't an Avro schema."""
    return read_types(text)


@lru_cache(maxsize=512)
def normal(text: str) -> str:
    """The normal text of a complete text."""
    return normal_text(types_of(text))


def writer_fingerprint(text: str) -> str:
    """SHA-256, in hex, over all that bytes and columns depend on."""
    return fingerprint_of(normal(text))


def check_writers(schema: AvroSchema) -> None:
    """Raises DescriptorError if a schema has no writers, or more than rows can name."""
    if not 1 <= len(schema.writers) <= MOST_WRITERS:
        raise DescriptorError(
            f"values may be written with 1 to {MOST_WRITERS} Avro schemas at a time", writers=len(schema.writers)
        )
