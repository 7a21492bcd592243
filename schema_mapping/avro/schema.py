"""Avro schemas of one or several writers."""

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
    """Writers' texts without references, newest first, without repetitions.

    `envelope` is the newest one's, for a coerced replay.
    """

    writers: tuple[str, ...]
    envelope: bytes | None = None

    @classmethod
    def of(cls, *texts: str, references: tuple[str, ...] = (), envelope: bytes | None = None) -> Self:
        """Raises DescriptorError if a text isn't an Avro schema."""
        writers = tuple(complete_text(text, references) for text in texts)
        return cls(writers=distinct(writers), envelope=envelope)

    @property
    def format(self) -> str:
        return AVRO_FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        """An older name ends with the beginning of its fingerprint."""
        return message_names(self.writers)

    def to_json(self) -> dict[str, Any]:
        return {"writers": [normal(text) for text in self.writers]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(writers=tuple(data["writers"]))


def distinct(writers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple({normal(text): text for text in reversed(writers)}[key] for key in dict.fromkeys(map(normal, writers)))


def complete_text(text: str, references: tuple[str, ...] = ()) -> str:
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
    newest, *older = writers
    return (types_of(newest).name, *(f"{types_of(text).name}@{writer_fingerprint(text)[:_SHORT]}" for text in older))


@lru_cache(maxsize=512)
def types_of(text: str) -> AvroTypes:
    """Raises DescriptorError if the text isn't an Avro schema."""
    return read_types(text)


@lru_cache(maxsize=512)
def normal(text: str) -> str:
    return normal_text(types_of(text))


def writer_fingerprint(text: str) -> str:
    return fingerprint_of(normal(text))


def check_writers(schema: AvroSchema) -> None:
    """Raises DescriptorError for no writers, or more than rows can name."""
    if not 1 <= len(schema.writers) <= MOST_WRITERS:
        raise DescriptorError(
            f"values may be written with 1 to {MOST_WRITERS} Avro schemas at a time", writers=len(schema.writers)
        )
