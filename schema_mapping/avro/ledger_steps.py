"""Steps of fields in a ledger: a renamed field with its old name as alias keeps its column.

A step is the first name that the ledger saw.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from schema_mapping.avro.writer_columns import StructField, WriterColumns
from schema_mapping.columns.graph import Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, Root
from schema_mapping.columns.paths import Path
from schema_mapping.names import ELEMENT_STEP, MAP_VALUE_STEP

Renamed: TypeAlias = Mapping[str, Mapping[str, str]]
"""By struct: the step of each field that hasn't its name as its step."""


def renamed_steps(columns: WriterColumns, entries: Iterable[LedgerEntry], root: Root) -> Renamed:
    """Only steps that aren't the fields' names."""
    below: defaultdict[Path, dict[str, str | None]] = defaultdict(dict)
    paths: set[Path] = set()
    for entry in entries:
        if entry.root != root:
            continue
        paths.add(entry.path)
        step = entry.path[-1]
        if isinstance(step, str):
            is_live = entry.state is ColumnState.LIVE
            below[entry.path[:-1]][step] = entry.source_name if is_live else below[entry.path[:-1]].get(step)
    renamed: dict[str, dict[str, str]] = {}
    waiting: deque[tuple[str, Path]] = deque([(columns.root, ())])
    seen: set[tuple[str, Path]] = set()
    while waiting:
        struct, path = waiting.popleft()
        if (struct, path) in seen:
            continue
        seen.add((struct, path))
        fields = columns.structs[struct]
        if struct not in renamed:
            renamed[struct] = _renamed(fields, below[path])
        for step, field in fields.items():
            inner, steps = struct_in(field.holds)
            child = (*path, renamed[struct].get(step, step), *steps)
            if inner is not None and child in paths:
                waiting.append((inner, child))
    return {struct: steps for struct, steps in renamed.items() if steps}


def _renamed(fields: Mapping[str, StructField], kept: Mapping[str, str | None]) -> dict[str, str]:
    """`kept` has the ledger's steps of the struct, with live names."""
    chosen: dict[str, str] = {}
    named = {name: step for step, name in kept.items() if name is not None}
    for step, field in fields.items():
        if field.name in named:
            chosen[step] = named[field.name]
    for step in fields:
        if step not in chosen and step in kept and step not in chosen.values():
            chosen[step] = step
    for step, field in fields.items():
        if step not in chosen:
            old = (alias for alias in field.aliases if alias in kept and alias not in chosen.values())
            chosen[step] = next(old, step)
            while chosen[step] in [kept_step for key, kept_step in chosen.items() if key != step]:
                chosen[step] += "#"
    return {step: kept_step for step, kept_step in chosen.items() if kept_step != step}


def struct_in(holds: Held) -> tuple[str | None, Path]:
    """Also return the steps between."""
    match holds:
        case StructOf(name):
            return name, ()
        case ListOf(element):
            struct, steps = struct_in(element)
            return struct, (ELEMENT_STEP, *steps)
        case MapOf(_, value):
            struct, steps = struct_in(value)
            return struct, (MAP_VALUE_STEP, *steps)
        case _:
            return None, ()
