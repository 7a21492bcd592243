"""What a side of the comparison is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from archiving.setting import Setting


class Side(ABC):
    """One way to archive a topic; what it needs is up once it is made."""

    name: str

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def archive(self, topic: str) -> int:
        """Archive the topic to where nothing is yet; the number of its records."""

    def notes(self) -> dict[str, object]:
        """What it says of the last topic it archived."""
        return {}

    def profile(self) -> dict[str, float]:
        """CPU seconds by stage of the last topic it archived, where they are taken."""
        return {}
