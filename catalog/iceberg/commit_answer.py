"""The catalog's answer to a commit, parsed only on use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from pyiceberg.table import CommitTableResponse
from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """`told` is the table's new metadata as JSON."""

    text: str
    told: dict[str, Any]

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises ValidationError for anything but an answer of the protocol: the outcome is unknown."""
        try:
            answer = json.loads(text)
            metadata, location = answer["metadata"], answer["metadata-location"]
        except (ValueError, LookupError, TypeError):
            metadata, location = None, None
        if not (isinstance(metadata, dict) and isinstance(location, str) and _is_of_protocol(metadata)):
            metadata = json.loads(CommitTableResponse.model_validate_json(text).metadata.model_dump_json())
        return cls(text, metadata)

    @property
    def metadata(self) -> TableMetadata:
        """Raises ValidationError if it is unreadable."""
        metadata: TableMetadata = CommitTableResponse.model_validate_json(self.text).metadata
        return metadata

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.told.get("properties") or {})

    @property
    def metadata_files(self) -> Sequence[str]:
        return [entry["metadata-file"] for entry in self.told.get("metadata-log") or ()]


def _is_of_protocol(metadata: dict[str, Any]) -> bool:
    properties, log = metadata.get("properties") or {}, metadata.get("metadata-log") or []
    return (
        "table-uuid" in metadata
        and isinstance(properties, dict)
        and all(isinstance(entry, str) for entry in properties.values())
        and isinstance(log, list)
        and all(isinstance(entry, dict) and isinstance(entry.get("metadata-file"), str) for entry in log)
    )
