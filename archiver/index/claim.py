"""Claims of builds: an erasure waits for a build that may have read its records, and no other build's runs count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Self

from archiver.errors import TopicBusy
from archiver.index.store import RunStore
from catalog.model import TopicRow, new_id
from catalog.registry import Registry

CLAIM: Final = "index-"
"""How the ids of builds begin, among the runs that may write erased records."""
_ALIVE_SECONDS: Final = 30.0


@dataclass(slots=True)
class BuildClaim:
    """The claim of one build. Its id is in the names of the build's objects."""

    registry: Registry
    topic: TopicRow
    id: str = field(default_factory=lambda: f"{CLAIM}{new_id()}")
    _noted: float = 0.0

    @classmethod
    @contextmanager
    def noted(cls, registry: Registry, topic: TopicRow) -> Iterator[Self]:
        """Claim until the end of the block. Load the table inside of it."""
        claim = cls(registry, topic)
        registry.claims.note_run(topic, claim.id)
        claim._noted = time.monotonic()
        try:
            yield claim
        finally:
            registry.claims.forget_run(topic, claim.id)

    def writes_to(self, store: RunStore) -> RunStore:
        """Return the store of this build. Before each upload it notes the folder, and raises as `renew`."""

        def vouch() -> None:
            self.registry.index.note_folder(self.topic, store.folder)
            self._renew()

        return replace(store, build=self.id, vouch=vouch)

    def renew(self) -> None:
        """Give a sign of life, every 30 seconds. Raises TopicBusy if an erasure took this build for dead."""
        if time.monotonic() - self._noted >= _ALIVE_SECONDS:
            self._renew()

    def _renew(self) -> None:
        if not self.registry.claims.renew_run(self.topic, self.id):
            raise taken_for_dead(self.topic)
        self._noted = time.monotonic()


def taken_for_dead(topic: TopicRow) -> TopicBusy:
    """Return the error of a build without a claim."""
    return TopicBusy(
        "an erasure took this build of the index for dead, since it gave no sign of life for an hour. Its runs aren't"
        " used, as they may have erased values: run `archiver index build` again",
        topic=topic.topic,
    )
