"""What would change if a schema were deployed: makes the assignment that the job would make, without keeping it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.config.model import TopicConfig
from archiver.schemas import FORMATS, mapping_options
from archiver.schemas.format_settings import ProposedFile
from schema_mapping import (
    DeclaredSchema,
    LedgerState,
    assign,
)
from schema_mapping.columns.evolution import Change
from schema_mapping.row import RowMapping, row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """The schemas of key and value. None if a format has no schema."""

    key: DeclaredSchema | None
    value: DeclaredSchema | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDiff:
    """What would change: the version that rows would get, whether it is new, and columns that would newly be cut."""

    version: int
    is_new: bool
    newest: int
    changes: tuple[Change, ...]
    cuts: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Tell the outcome in a few words."""
        if not self.is_new:
            if self.version == self.newest:
                return f"the newest schema, version {self.version}: nothing changes"
            return f"a schema seen before, version {self.version}: nothing changes unless it comes to stay"
        return f"would become version {self.version}" + ("" if self.changes else "; no column changes")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        changes = [change.to_json() for change in self.changes]
        return {"version": self.version, "is_new": self.is_new, "changes": changes, "cuts": list(self.cuts)}


def proposed_schemas(
    settings: TopicConfig,
    state: LedgerState,
    *,
    file: Path,
    message: str | None,
    of_key: bool,
) -> Schemas:
    """Read the schemas to compare with: `file` for one side, today's schema for the other.

    If the topic has several message types, `file` replaces the one named `message`, or adds it. Raises ConfigError if
    the file can't be read or its message isn't known.
    """
    newest = _newest(state)
    key, value = newest.key_schema, newest.value_schema
    side, today = (settings.key, key) if of_key else (settings.value, value)
    proposed = ProposedFile(path=file, message=message, topic=settings.name, today=today)
    read = FORMATS.next_schema(proposed, side)
    return Schemas(key=read, value=value) if of_key else Schemas(key=key, value=read)


def compare(state: LedgerState, proposed: Schemas, settings: TopicConfig | None = None) -> SchemaDiff:
    """Compare the proposed schemas with the ledger, and tell what the job would make of them.

    Without `settings` columns have their default options.
    """
    newest = state.versions[-1].version
    outcome = assign(
        state,
        key=proposed.key,
        value=proposed.value,
        options=None if settings is None else mapping_options(settings),
        partition_source=(settings and settings.partition_source) or _newest(state).partition_source,
    )
    is_new = outcome.version > newest
    cuts = sorted(_cuts(outcome.row) - _cuts(_newest(state))) if is_new else ()
    return SchemaDiff(version=outcome.version, is_new=is_new, newest=newest, changes=outcome.changes, cuts=tuple(cuts))


def compare_files(old: Path, new: Path, *, message: str, imports: Sequence[Path] = ()) -> SchemaDiff:
    """Compare two schemas of a message without a table: as if every row had been written with the one in `old`.

    Each file is a descriptor set or a `.proto` file; `imports` are the folders that its imports start from. Raises
    ConfigError if a file can't be read or lacks the message.
    """
    files = (ProposedFile(path=file, message=message, imports=tuple(imports)) for file in (old, new))
    first, second = map(FORMATS.next_schema, files)
    return compare(assign(LedgerState(), value=first).state, Schemas(key=None, value=second))


def _newest(state: LedgerState) -> RowMapping:
    return row_mapping_from_text(state.versions[-1].mapping)


def _cuts(row: RowMapping) -> set[str]:
    return {
        f"{root}.{cut.column}  {cut.message}: {cut.reason.value}"
        for root, mapping in (("key", row.key), ("val", row.value))
        for cut in mapping.cuts
    }
