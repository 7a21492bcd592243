"""The data files of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from archiver.archive.table_files import ValueBounds
from archiver.records.listed_files import ListedFile, time_text
from archiver.terminal.amounts import counted, size
from archiver.terminal.fields import ShownField, fields_json, fields_listing
from archiver.terminal.listing import NOTHING, Column


def files_json(files: Sequence[ListedFile]) -> list[dict[str, Any]]:
    return [fields_json(_FILE, file) for file in files]


def files_screen(topic: str, table: str, files: Sequence[ListedFile]) -> RenderableType:
    records, size_bytes = sum(file.records for file in files), sum(file.size_bytes for file in files)
    total = f"{topic} in {table}: {counted(len(files), 'file')}, {counted(records, 'record')}, {size(size_bytes)}"
    return Group(*([fields_listing(_FILE, files)] if files else []), Text(total))


def _span(bounds: ValueBounds | None) -> str:
    if bounds is None:
        return "not stated"
    return f"{bounds.low:,}" if bounds.low == bounds.high else f"{bounds.low:,} to {bounds.high:,}"


def _place(file: ListedFile) -> list[Any]:
    return [value if isinstance(value, int | float | bool | None) else str(value) for value in file.place]


_FILE: Final[tuple[ShownField[ListedFile], ...]] = (
    ShownField(
        value=lambda it: it.partitions,
        column=Column(heading="partition", alone="partition {}", kind="name"),
        cell=lambda it: _span(it.partitions),
    ),
    ShownField(
        value=lambda it: it.offsets,
        column=Column(heading="offsets", alone="offsets {}", kind="text"),
        cell=lambda it: _span(it.offsets),
    ),
    ShownField(name="records", value=lambda it: it.records, column=Column(heading="records", alone="{} records")),
    ShownField(
        name="size_bytes",
        value=lambda it: it.size_bytes,
        column=Column(heading="size", alone="{}"),
        cell=lambda it: size(it.size_bytes),
    ),
    ShownField(
        name="earliest",
        value=lambda it: None if it.times is None else time_text(it.times.low),
        column=Column(heading="earliest record", alone="from {}", kind="text"),
        cell=lambda it: NOTHING if it.times is None else time_text(it.times.low),
    ),
    ShownField(
        name="latest",
        value=lambda it: None if it.times is None else time_text(it.times.high),
        column=Column(heading="latest record", alone="to {}", kind="text"),
        cell=lambda it: NOTHING if it.times is None else time_text(it.times.high),
    ),
    ShownField(name="path", value=lambda it: it.path, column=Column(heading="path", alone="{}", kind="text")),
    ShownField(name="first_partition", value=lambda it: None if it.partitions is None else it.partitions.low),
    ShownField(name="last_partition", value=lambda it: None if it.partitions is None else it.partitions.high),
    ShownField(name="first_offset", value=lambda it: None if it.offsets is None else it.offsets.low),
    ShownField(name="last_offset", value=lambda it: None if it.offsets is None else it.offsets.high),
    ShownField(name="table_partition", value=_place),
)
