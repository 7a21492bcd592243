"""Writes runs again without offsets that are gone: dropping the largest runs at each erasure would cost more."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.errors import StorageError
from archiver.index.claim import BuildClaim
from archiver.index.merging import RunMerge
from archiver.index.store import RunStore
from archiver.storage.postings import OffsetSpans
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import GoneOffsets

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrim:
    """Trims the runs of one topic. Keeps `memory` of postings at a time."""

    topic: TopicRow
    registry: Registry
    store: RunStore
    memory: int

    def run(self, gone: Sequence[GoneOffsets], files: Callable[[], Iterable[TableFile]]) -> None:
        """Trim the runs that may have postings of `gone`, or of erased or accepted offsets.

        `files` are the table's. A run for which it fails stays as it is. Raises RegistryError.
        """
        if not self.store.folder:
            return
        with BuildClaim.noted(self.registry, self.topic) as claim:
            begun_ms, noted = self.registry.index.gone(self.topic)
            every = (*gone, *noted)
            store = claim.writes_to(self.store)
            for run in self.registry.index.load(self.topic):
                # Only these: rows at other gone offsets may have come back before the run was built.
                of_run = [offsets for offsets in every if offsets.may_be_in(run.begun_ms, run.spans)]
                if of_run:
                    merge = RunMerge(
                        topic=self.topic,
                        registry=self.registry,
                        store=store,
                        memory=self.memory,
                        gone=_spans(of_run),
                        is_over=lambda: False,
                        alive=claim.renew,
                    )
                    try:
                        merge.trim(run, files(), begun_ms=begun_ms)
                    except StorageError as error:
                        _LOG.warning("%s: a run of the index can't be trimmed: %s", self.topic.topic, error)


def _spans(gone: Sequence[GoneOffsets]) -> dict[int, OffsetSpans]:
    spans = defaultdict[int, list[tuple[int, int]]](list)
    for offsets in gone:
        spans[offsets.partition].append((offsets.start, offsets.end))
    return {partition: OffsetSpans.of(several) for partition, several in spans.items()}
