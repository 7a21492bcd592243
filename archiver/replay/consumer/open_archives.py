"""The archives a consumer has to do with, each opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence

from archiver.archive.tables import CatalogTables, TableSource
from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.config import Config


class OpenArchives:
    """Archives by topic; `tables` is where they come from if not from the configuration's catalog."""

    def __init__(self, config: Config, tables: TableSource | None) -> None:
        self._config = config
        self.tables = tables or CatalogTables(config)
        self._opened: dict[str, TopicArchive] = {}

    def of(self, topic: str) -> TopicArchive:
        """The topic's archive; ReplayError where it has none."""
        found = self._opened.get(topic)
        if found is None:
            found = self._opened[topic] = open_archive(self._config, topic, self.tables)
        return found

    @property
    def opened(self) -> dict[str, TopicArchive]:
        """Those in use, the first opened first."""
        return dict(self._opened)

    def described(self, topic: str | None) -> Sequence[TopicArchive]:
        """One topic's archive, or every one there is."""
        return [self.of(name) for name in ([topic] if topic else self.tables.topics())]
