"""Deletes runs: out of use first, then objects, then rows. Failed deletions are tried again later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.errors import StorageError
from archiver.index.store import EXTENSION, RunStore
from archiver.storage.objects import ListedObject
from catalog.model import TopicRow
from catalog.registry import Registry

CLAIM: Final = "index-"
"""How the ids of builds begin, among the runs that may write erased records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRemoval:
    topic: TopicRow
    registry: Registry
    store: RunStore

    def drop(self, ids: Collection[str]) -> list[StorageError]:
        """Take runs out of use, delete their objects, return failures. Raises RegistryError."""
        if ids:
            self.registry.index.drop(self.topic, ids)
        failures: list[StorageError] = []
        for run_id, path in self.registry.index.dropped(self.topic).items():
            try:
                self.store.delete(path)
            except StorageError as error:
                failures.append(error)
            else:
                self.registry.index.forget(self.topic, run_id)
        return failures

    def erase(
        self, spans: Mapping[int, Sequence[tuple[int, int]]], *, begun_by_ms: int, grace: float
    ) -> tuple[list[StorageError], tuple[str, ...]]:
        """Delete runs begun up to `begun_by_ms` that may have terms of these offsets, and strays.

        Returns failures, and builds that may still write such terms. Raises RegistryError.
        """
        failures = self.drop(())
        while tainted := self._tainted(spans, begun_by_ms):  # a merge may register one of runs that are dropped here
            failures = self.drop(tainted)
        left, alive = self.delete_strays(grace=grace)
        return [*failures, *left], alive

    def delete_strays(self, *, grace: float, own: str = "") -> tuple[list[StorageError], tuple[str, ...]]:
        """Delete objects of builds without a sign of life for `grace` seconds.

        In every folder that the index had. Does nothing if a build other than `own` is alive. Returns failures and
        these builds. Raises RegistryError.
        """
        failures: list[StorageError] = []
        listed: dict[str, tuple[ListedObject, ...]] = {}
        for folder in sorted({self.store.folder, *self.registry.index.folders(self.topic)} - {""}):
            try:
                listed[folder] = self.store.listed(folder)
            except StorageError as error:
                failures.append(error)
        # after the listing: a build that isn't alive now has registered its objects, or never will
        claims = self.registry.claims.runs(self.topic)
        alive = tuple(it.id for it in claims if it.id.startswith(CLAIM) and it.id != own and it.is_alive(grace))
        if alive:
            return failures, alive
        kept = {run.path for run in self.registry.index.load(self.topic)}
        for folder, objects in listed.items():
            strays = (it.path for it in objects if it.path not in kept and it.name.endswith(EXTENSION))
            failures += self.store.delete_all(strays)
            if not objects and folder != self.store.folder:
                self.registry.index.forget_folder(self.topic, folder)
        return failures, ()

    def _tainted(self, spans: Mapping[int, Sequence[tuple[int, int]]], begun_by_ms: int) -> list[str]:
        runs = self.registry.index.load(self.topic)
        return [run.id for run in runs if run.begun_ms <= begun_by_ms and run.meets(spans)]
