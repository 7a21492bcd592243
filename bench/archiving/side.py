"""The interface of a side in the comparison, and what each side is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from archiver.local import Endpoints

SLOTS = "local[2]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The topic to measure with, a smaller one to warm up with, and a folder."""

    endpoints: Endpoints
    topic: str
    warm_topic: str
    folder: Path


class Side(ABC):
    """One way to archive a topic. Everything it needs is started by its constructor."""

    name: str

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def archive(self, topic: str) -> int:
        """Archive the topic to a new place, and return the number of its records."""

    def notes(self) -> dict[str, object]:
        """Return what the side reports of the last topic it archived."""
        return {}

    def profile(self) -> dict[str, float]:
        """Return CPU seconds by stage for the last topic it archived, if the side measures them."""
        return {}
