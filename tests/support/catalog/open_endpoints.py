"""The stack with another catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from archiver.local import Endpoints
from tests.support.servers.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEndpoints(Endpoints):
    storage: Mapping[str, str] = field(repr=False)

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        return {"uri": self.catalog_uri, "warehouse": self.warehouse, **self.storage}


def with_catalog(stack: Stack, scratch: Path, uri: str, warehouse: str, storage: Mapping[str, str]) -> Stack:
    existing = {field.name: getattr(stack.endpoints, field.name) for field in fields(Endpoints)}
    return Stack(OpenEndpoints(**existing | {"catalog_uri": uri, "warehouse": warehouse, "storage": storage}), scratch)
