"""Deletes runs: out of use first, then objects, then rows. Failed deletions are tried again later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from archiver.errors import StorageError
from archiver.index.claim import CLAIM
from archiver.index.store import EXTENSION, RunStore, build_of
from archiver.storage.objects import ListedObject
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.rewriting_runs import RewritingRun
from catalog.term_runs import GoneOffsets


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
        self, gone: Sequence[GoneOffsets], *, begun_by_ms: int, trim: Callable[[], None] = lambda: None
    ) -> tuple[list[StorageError], tuple[str, ...]]:
        """Delete the runs that may have terms of these offsets, or of erased or accepted ones. Also deletes strays.

        `begun_by_ms` is when the last of the records left the table. Returns failures, and the builds that may still
        write such terms: they began before, or merge runs from before. Raises RegistryError.

        Once it returns neither, no such run is registered any more: builds from before have ended or lost their claims,
        and a merge needs runs that are current when it begins and when it ends.
        """
        waiting = self._builds(begun_by_ms)  # before the runs: what ended builds registered is among these
        trim()
        self.registry.index.erase(self.topic, gone)
        waiting += self._builds(begun_by_ms)  # before the objects: what ended merges of dropped runs left is listed
        return [*self.drop(()), *self.delete_strays()], tuple(dict.fromkeys(waiting))

    def delete_strays(self) -> list[StorageError]:
        """Delete the objects of builds that ended early. Looks into every folder that the index had.

        Returns failures. Raises RegistryError.
        """
        failures: list[StorageError] = []
        listed: dict[str, tuple[ListedObject, ...]] = {}
        for folder in sorted({self.store.folder, *self.registry.index.folders(self.topic)} - {""}):
            try:
                listed[folder] = self.store.listed(folder)
            except StorageError as error:
                failures.append(error)
        # after the listing: a build that isn't alive now has registered its objects, or never will
        alive = {run.id for run in self._claims()}
        kept = {run.path for run in self.registry.index.load(self.topic)}
        for folder, objects in listed.items():
            runs = (it for it in objects if it.path not in kept and it.name.endswith(EXTENSION))
            failures += self.store.delete_all(it.path for it in runs if not _may_be_of(it.name, alive))
            if not objects and folder != self.store.folder:
                self.registry.index.forget_folder(self.topic, folder)
        return failures

    def _builds(self, begun_by_ms: int) -> list[str]:
        return [run.id for run in self._claims() if run.begun_ms <= begun_by_ms]

    def _claims(self) -> list[RewritingRun]:
        """Return the builds that are alive. Builds that gave no sign of life for an hour lose their claims."""
        builds = [run for run in self.registry.claims.runs(self.topic) if run.id.startswith(CLAIM)]
        for build in builds:
            if not build.is_alive(0):
                self.registry.claims.forget_run(self.topic, build.id)
        return [build for build in builds if build.is_alive(0)]


def _may_be_of(name: str, builds: Collection[str]) -> bool:
    """Whether one of these builds wrote an object. Earlier versions didn't write their claims into names."""
    build = build_of(name)
    return build in builds or (not build and bool(builds))
