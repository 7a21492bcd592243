"""The status of the stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from archiver.local.endpoints import Endpoints

Health = Literal["ready", "not answering", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """`started` is in seconds since the epoch, `addresses` by port name."""

    name: str
    title: str
    version: str
    health: Health
    pid: int | None
    started: float | None
    addresses: Mapping[str, str]
    log: Path

    def to_json(self) -> dict[str, Any]:
        started = None if self.started is None else datetime.fromtimestamp(self.started, UTC).isoformat()
        return {
            "title": self.title,
            "version": self.version,
            "health": self.health,
            "pid": self.pid,
            "started": started,
            "addresses": dict(self.addresses),
            "log": str(self.log),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StackStatus:
    """The state of the stack; empty if there never was one."""

    directory: Path
    parts: tuple[PartStatus, ...]
    endpoints: Endpoints | None

    @property
    def ready(self) -> bool:
        return bool(self.parts) and all(part.health == "ready" for part in self.parts)

    def to_json(self, *, with_secrets: bool = False) -> dict[str, Any]:
        endpoints = self.endpoints
        addresses = {} if endpoints is None else endpoints.public()
        if endpoints is not None and with_secrets:
            addresses |= endpoints.secrets()
        return {
            "dir": str(self.directory),
            "ready": self.ready,
            "endpoints": addresses,
            "parts": {part.name: part.to_json() for part in self.parts},
        }
