"""Cached table names: clients may send any name."""

from __future__ import annotations

import asyncio
from typing import Any

from archiver.archive.tables import TableSource
from archiver.serve.reading.workers import Workers
from schema_mapping.errors import ContextError


class TableListing:
    """Use it from one event loop."""

    def __init__(self, tables: TableSource, workers: Workers, *, interval: float) -> None:
        """The catalog is listed at most every `interval` seconds, even if it doesn't answer."""
        self._tables = tables
        self._workers = workers
        self._interval = interval
        self._names: frozenset[str] = frozenset()
        self._error: ContextError | None = None
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def has_table(self, topic: str) -> bool:
        """Raises the catalog's last error if it can't be listed.

        Raises ConfigError if no table can have the topic's name.
        """
        name = self._tables.table_of(topic)
        if asyncio.get_running_loop().time() - self._listed_at >= self._interval:
            await asyncio.shield(self._list_once())
        if self._error is not None:
            raise self._error
        return name in self._names

    def close(self) -> asyncio.Future[Any]:
        if self._listing is not None:
            self._listing.cancel()
        return asyncio.gather(*(() if self._listing is None else (self._listing,)), return_exceptions=True)

    def _list_once(self) -> asyncio.Task[None]:
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._list())
        return self._listing

    async def _list(self) -> None:
        try:
            self._names = await self._workers.lookup(self._tables.names)
            self._error = None
        except ContextError as error:
            error.__cause__ = error.__context__ = None
            self._error = error.with_traceback(None)
        self._listed_at = asyncio.get_running_loop().time()
