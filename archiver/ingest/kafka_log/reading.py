"""Read one range as records."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Generator
from contextlib import closing

from archiver.files.records import Records
from archiver.ingest.kafka_log.grouping import Grouper
from archiver.ingest.plan.ranges import PlannedRange
from archiver.wire.columns import DecodedBatches
from schema_mapping.errors import ContextError


class KafkaReading:
    def __init__(
        self,
        pieces: Generator[DecodedBatches],
        planned: PlannedRange,
        *,
        plan_time_ms: int,
        budget_seconds: float,
    ) -> None:
        self._pieces = pieces
        self._plan_time_ms = plan_time_ms
        self._budget_seconds = budget_seconds
        self._epoch_starts: list[int] = []
        self._epochs = [planned.epochs.archived]
        self.batches = 0
        self.source_bytes = 0
        self.seconds = 0.0

    def records(self) -> Generator[Records]:
        deadline = time.monotonic() + self._budget_seconds
        grouper = Grouper(plan_time_ms=self._plan_time_ms)
        error: ContextError | None = None
        with closing(self._pieces):
            while True:
                try:
                    piece = self._next()
                except ContextError as failure:
                    error = failure
                    break
                if piece is None:
                    break
                self._note(piece)
                yield from grouper.push(piece)
                if time.monotonic() >= deadline:
                    break
        yield from grouper.finish()
        if error is not None:
            raise error

    def leader_epoch(self, end_offset: int) -> int:
        """Includes epochs of empty batches."""
        return self._epochs[bisect_left(self._epoch_starts, end_offset)]

    def _next(self) -> DecodedBatches | None:
        started = time.perf_counter()
        try:
            return next(self._pieces, None)
        finally:
            self.seconds += time.perf_counter() - started

    def _note(self, piece: DecodedBatches) -> None:
        self.batches += len(piece.batches)
        self.source_bytes += int(piece.batches.bytes.sum())
        begins = piece.epochs.base_offset.tolist(), piece.epochs.epoch.tolist()
        for offset, epoch in zip(*begins, strict=True):
            if epoch > self._epochs[-1]:
                self._epoch_starts.append(offset)
                self._epochs.append(epoch)
