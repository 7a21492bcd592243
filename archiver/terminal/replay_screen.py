"""Shows an export."""

from __future__ import annotations

from typing import assert_never

from archiver.replay.export import Exported, ExportEvent, ExportStarted
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole

_MEGABYTE = 1_000_000


class ReplayScreen(Bars):
    def __init__(self, console: TextConsole, topic: str) -> None:
        super().__init__(console, unit="offset")
        self._topic = topic

    def __call__(self, event: ExportEvent) -> None:
        match event:
            case ExportStarted():
                self.show(self._topic, done=0, total=event.offsets)
            case Exported():
                self.show(self._topic, done=event.offsets, total=None)
            case _ as never:
                assert_never(never)


def export_summary(*, records: int, size_bytes: int, seconds: float, where: str) -> str:
    noun = "record" if records == 1 else "records"
    pace = f"{records / seconds:,.0f} records/s, {size_bytes / seconds / _MEGABYTE:,.1f} MB/s" if seconds else ""
    return f"{records:,} {noun}, {size_bytes / _MEGABYTE:,.1f} MB, in {seconds:.1f} s ({pace}) to {where}"
