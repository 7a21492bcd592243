"""A side of the comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from archiver.local import Endpoints

SLOTS = "local[2]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    endpoints: Endpoints
    topic: str
    warm_topic: str
    folder: Path


class Side(ABC):
    """Its constructor starts everything that it needs."""

    name: str

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def archive(self, topic: str) -> int: ...

    def notes(self) -> dict[str, object]:
        return {}

    def profile(self) -> dict[str, float]:
        return {}
