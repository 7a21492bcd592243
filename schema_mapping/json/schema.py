"""The schema of JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from schema_mapping.json.read_schema import read_document, read_type
from schema_mapping.json.types import JsonType, from_data, to_data

JSON_FORMAT: Final = "json"
UNTITLED: Final = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """`types` is JSON (`types.to_data`), with descriptions. `envelope` is for a coerced replay."""

    types: str
    name: str = UNTITLED
    envelope: bytes | None = None

    @classmethod
    def of(cls, text: str, *, references: Mapping[str, str] | None = None, envelope: bytes | None = None) -> Self:
        """`references` are documents by name. Raises DescriptorError."""
        document = read_document(text)
        documents = {name: read_document(part, name) for name, part in (references or {}).items()}
        types = json.dumps(to_data(read_type(document, documents), docs=True), separators=(",", ":"))
        title = document.get("title") if isinstance(document, dict) else None
        return cls(types=types, name=title if isinstance(title, str) and title else UNTITLED, envelope=envelope)

    @property
    def format(self) -> str:
        return JSON_FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.name,)


@lru_cache(maxsize=256)
def types_of(text: str) -> JsonType:
    return from_data(json.loads(text))


@lru_cache(maxsize=256)
def plain_types(text: str) -> str:
    """No bytes or columns depend on descriptions."""
    data: Any = to_data(types_of(text))
    return json.dumps(data, separators=(",", ":"))
