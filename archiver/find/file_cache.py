"""Open data files, each read by one thread at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import TableFile


@dataclass(slots=True)
class _CachedFile:
    turn: Lock = field(default_factory=Lock)
    file: OpenFile | None = None
    users: int = 0


class FileCache:
    """At most `most` idle files stay open. Thread-safe."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._files: OrderedDict[tuple[int, str], _CachedFile] = OrderedDict()

    @contextmanager
    def using(self, storage: TopicStorage, file: TableFile) -> Iterator[OpenFile]:
        """Raises as OpenFile.open."""
        key = (id(storage), file.path)
        with self._lock:
            opened = self._files.setdefault(key, _CachedFile())
            self._files.move_to_end(key)
            opened.users += 1
        try:
            with opened.turn:
                if opened.file is None:
                    opened.file = OpenFile.open(storage, file)
                yield opened.file
        finally:
            with self._lock:
                opened.users -= 1
                idle = [name for name, cached in self._files.items() if not cached.users]
                closing = [self._files.pop(name) for name in idle[: max(0, len(idle) - self._most)]]
            for evicted in closing:
                _close(evicted)

    def close(self) -> None:
        """No file may be in use."""
        with self._lock:
            closing = list(self._files.values())
            self._files.clear()
        for opened in closing:
            _close(opened)


def _close(opened: _CachedFile) -> None:
    if opened.file is not None:
        opened.file.close()
