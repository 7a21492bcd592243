"""Entries and checks of audit trails."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from archiver.errors import ConfigError
from archiver.records.where_syntax import moment_of
from archiver.terminal.amounts import counted
from archiver.terminal.listing import NOTHING, Column, Listing

if TYPE_CHECKING:
    from archiver.audit.check import TrailReport


_WIDEST: Final = 80
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN_OF_A_HASH: Final = 12
"""Whole hashes are in JSON: here they would take the room of what was done."""
_FIRST: Final = "step", "reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    kinds: frozenset[str]
    since: datetime | None
    until: datetime | None
    limit: int | None

    @classmethod
    def of(cls, *, kinds: Sequence[str], since: str | None, until: str | None, limit: int | None) -> Self:
        """Raises ConfigError."""
        return cls(kinds=frozenset(kinds), since=_time("--from", since), until=_time("--to", until), limit=limit)

    def select(self, entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        matching = (entry for entry in entries if self._is_wanted(entry))
        return list(matching if self.limit is None else deque(matching, maxlen=self.limit))

    def _is_wanted(self, entry: Mapping[str, Any]) -> bool:
        if self.kinds and entry["act"] not in self.kinds:
            return False
        if self.since is None and self.until is None:
            return True
        time = datetime.fromisoformat(entry["time"])
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


def entry_listing(entries: Sequence[Mapping[str, Any]]) -> Listing:
    listing = Listing(
        Column(heading="entry", kind="name"),
        Column(heading="time", kind="text"),
        Column(heading="act", kind="text"),
        Column(heading="records"),
        Column(heading="files"),
        Column(heading="snapshot", kind="text", is_optional=True),
        Column(heading="by", kind="text"),
        Column(heading="what", alone="{}", kind="text"),
    )
    for entry in entries:
        details, by = entry["details"], entry["by"]
        listing.add(
            str(entry["seq"]),
            entry["time"][:19] + "Z",
            entry["act"] + (" (late)" if entry.get("late") else ""),
            _number(_records(details)),
            _number(_files(details)),
            str(details.get("snapshot_id") or NOTHING),
            f"{by['principal']} on {by['host']}",
            _what(details),
        )
    return listing


def report_lines(reports: Sequence[TrailReport], *, shown: int) -> Iterator[str]:
    if not reports:
        yield "there is no audit trail in the journal's store"
    for report in reports:
        yield f"{report.topic or report.folder}: {counted(report.entries, 'entry', 'entries')}, {_signed(report)}"
        for problem in report.problems[:shown]:
            location = "" if problem.path is None else f" ({problem.path})"
            yield f"  {problem.kind}: {problem.text}{location}"
        left = len(report.problems) + report.more_problems - shown
        if left > 0:
            yield f"  and {left:,} more"
        if report.is_whole:
            yield f"  nothing wrong; last hash {report.last_hash}"


def report_json(report: TrailReport) -> dict[str, Any]:
    return {
        **asdict(report),
        "problems": [asdict(problem) for problem in report.problems],
        "keys": list(report.keys),
        "unsigned": report.unsigned,
        "is_whole": report.is_whole,
    }


def _signed(report: TrailReport) -> str:
    if not report.keys:
        return f"{counted(report.checkpoints, 'checkpoint')}, no signature checked (give --public-key)"
    if report.signed_time is None:
        return "no checkpoint by the given keys"
    tail = "" if not report.unsigned else f"; nobody could see if the {report.unsigned:,} after them had once been more"
    checkpoints = counted(report.checkpoints, "checkpoint")
    return f"{report.signed:,} signed until {report.signed_time[:19]}Z by {checkpoints}{tail}"


def _left_out(details: Mapping[str, Any]) -> Mapping[str, int]:
    left_out: Mapping[str, int] = details.get("left_out", {})
    return left_out


def _records(details: Mapping[str, Any]) -> int | None:
    return sum(_left_out(details).values()) or details.get("rows")


def _files(details: Mapping[str, Any]) -> int | None:
    name = "files_before" if _left_out(details) else "files"
    return details.get(name)


def _what(details: Mapping[str, Any]) -> str:
    words = [f"{name.replace('_', ' ')} {count:,}" for name, count in _left_out(details).items()]
    if words and details.get("rows"):
        words.append(f"kept {counted(details['rows'], 'record')} in {counted(details['files'], 'new file')}")
    if isinstance(offsets := details.get("offsets"), dict):
        words += [counted(len(offsets), "partition")] if offsets else []
    else:
        hidden = {"rows", "files", "commit_id", "snapshot_id"}
        names = [*(name for name in _FIRST if name in details), *(name for name in details if name not in _FIRST)]
        plain = ((name, details[name]) for name in names if name not in hidden)
        words += [
            f"{name.replace('_', ' ')} {_value(value)}"
            for name, value in plain
            if isinstance(value, str | int) and value
        ]
    return ", ".join(words)[:_WIDEST] or NOTHING


def _value(value: str | int) -> str:
    if isinstance(value, int):
        return str(value) if isinstance(value, bool) else f"{value:,}"
    return value[:_SHOWN_OF_A_HASH] if _HASH.fullmatch(value) else value


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else NOTHING


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = moment_of(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is no time: write 2026-01-31T00:00:00Z") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
