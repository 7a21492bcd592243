"""Which files may have records that are to be erased: those of the table, and retired ones that only the store has."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.archive.table_files import TableFile
from archiver.errors import UpkeepError
from archiver.upkeep.removal.components import Component
from archiver.upkeep.removal.conditions import AtOffsets, Condition, Matching
from catalog.model import file_name
from catalog.registry.removable import RemovableRange


def may_match(each: Component, condition: Condition) -> bool:
    """Whether a component may have such records, by its ranges."""
    match condition:
        case Matching(where, ends):
            for one in each.ranges:
                bounds = where.bounds(one.partition) if one.partition in ends else None
                if bounds is not None and one.start_offset <= bounds.high_offset and one.end_offset > bounds.low_offset:
                    return True
            return False
        case AtOffsets(spans):
            return any(
                start < one.end_offset and one.start_offset < end
                for one in each.ranges
                for start, end in spans.get(one.partition, ())
            )
        case _:
            return True


def retired_components(ranges: Iterable[RemovableRange], files: Iterable[TableFile]) -> list[Component]:
    """Components of files that only the store has any more: they are searched, and never written anew."""
    there = {file_name(file.path) for file in files}
    by_path: dict[str, list[RemovableRange]] = {}
    for each in ranges:
        for path in each.paths:
            if file_name(path) not in there:
                by_path.setdefault(path, []).append(each)
    return [
        Component(ranges=tuple(those), files=(), recorded=(path,), has_foreign=True) for path, those in by_path.items()
    ]


def unknown_rows(file: TableFile) -> UpkeepError:
    """Why a file in which no known range has records isn't searched."""
    return UpkeepError(
        "the registry has no range of this file's rows, so they can't be accounted for; it wasn't searched. Run"
        " `archiver registry rebuild`, which adds ranges that journal or footers know. If none does, it isn't known"
        " whose rows these are: compare them with Kafka before you change them (`archiver verify --against-kafka`)",
        file=file.path,
    )
