"""The result of rebuilding the registry."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from archiver.terminal.amounts import counted
from archiver.upkeep.rebuild.job import RebuiltTopic


def rebuild_screen(rebuilt: Sequence[RebuiltTopic]) -> RenderableType:
    lines = [line for topic in rebuilt for line in _lines(topic)]
    return Text("\n".join(lines) or "no topic of the configuration has a table")


def _lines(topic: RebuiltTopic) -> list[str]:
    source = "journal" if topic.from_journal else "footers"
    restored = f"{counted(topic.schema_versions, 'schema version')} and {counted(topic.ranges, 'range')} restored"
    lines = [f"{topic.topic} in {topic.table}: {restored} (from the {source}), {topic.staged} staged"]
    if topic.metadata:
        lines.append(f"  {counted(topic.metadata, 'entry', 'entries')} of metadata restored")
    lines += [
        f"  left: partition {file.partition} from {file.start_offset:,}, {file.path}: {file.reason}"
        for file in topic.left
    ]
    lines += [
        f"  unknown: partition {partition} [{start:,}, {end:,}): only the table's rows show these offsets. They are"
        " kept; more may have been archived"
        for partition, start, end in topic.unknown
    ]
    if topic.left:
        lines.append(
            "  `archiver archive` fetches their records from Kafka, and they become orphans. Where Kafka no longer "
            "has them, and a file is the first of its partition, say so: --start PARTITION=OFFSET"
        )
    return lines
