"""Shows metadata of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from catalog.record_metadata import MetadataEntry, OfKey, OfOffsets


def entry_line(entry: MetadataEntry) -> str:
    """Return a line such as `0:1200-1209 case=12, 2026-01-31T10:00:00Z by jane on host`."""
    value = f"{entry.name} deleted" if entry.value is None else f"{entry.name}={entry.value}"
    return f"{_target_text(entry)} {value}, {_time_text(entry)} by {entry.author}"


def entries_text(entries: Sequence[MetadataEntry]) -> Text:
    return Text("\n".join(map(entry_line, entries)) or "no metadata")


def changed_lines(entries: Sequence[MetadataEntry], *, is_journaled: bool, dry_run: bool) -> Iterator[str]:
    for entry in entries:
        value = f"{entry.name} deleted" if entry.value is None else f"{entry.name}={entry.value} set"
        yield f"{_target_text(entry)} {value}{'; nothing was changed' if dry_run else ''}"
    if not (is_journaled or dry_run):
        yield "there is no journal ([archive] journal): if the registry is lost, its metadata is lost"


def entry_json(entry: MetadataEntry) -> dict[str, Any]:
    match entry.target:
        case OfKey(key):
            target: dict[str, Any] = {"key": key_text(key)}
        case OfOffsets(partition, start, end):
            target = {"partition": partition, "first": start, "last": end - 1}
    return {
        "id": entry.id,
        **target,
        "name": entry.name,
        "value": entry.value,
        "deleted": entry.value is None,
        "time": _time_text(entry),
        "author": entry.author,
    }


def key_text(key: bytes) -> str:
    """Return a key as --key takes it."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() and not text.startswith("0x") else f"0x{key.hex()}"


def _target_text(entry: MetadataEntry) -> str:
    match entry.target:
        case OfKey(key):
            return f"key {key_text(key)}:"
        case OfOffsets(partition, start, end):
            return f"{partition}:{start}-{end - 1}"


def _time_text(entry: MetadataEntry) -> str:
    return entry.time.isoformat(timespec="microseconds").replace("+00:00", "Z")
