"""Compares a proposed schema with the ledger, as the job would assign it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.config.model import TopicConfig
from archiver.errors import ConfigError
from archiver.schemas import FORMATS, mapping_options
from archiver.schemas.format_settings import ProposedFile
from schema_mapping import (
    DeclaredSchema,
    LedgerState,
    assign,
)
from schema_mapping.columns.evolution import Change
from schema_mapping.columns.options import NEW_TABLES
from schema_mapping.row import RowMapping, row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """None if a format has no schema."""

    key: DeclaredSchema | None
    value: DeclaredSchema | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDiff:
    """`base` is the compared version, if not the newest, and `target` the version after it."""

    version: int
    is_new: bool
    newest: int
    changes: tuple[Change, ...]
    cuts: tuple[str, ...]
    base: int | None = None
    target: int | None = None

    @property
    def summary(self) -> str:
        if self.base is not None:
            after = "the schema" if self.target is None else f"version {self.target}"
            changed = "" if self.changes else ": no column changes"
            return f"from version {self.base} to {after}{changed}"
        if not self.is_new:
            if self.version == self.newest:
                return f"the newest schema, version {self.version}: nothing changes"
            return f"a schema seen before, version {self.version}: nothing changes unless it comes to stay"
        return f"would become version {self.version}" + ("" if self.changes else "; no column changes")

    def to_json(self) -> dict[str, Any]:
        changes = [change.to_json() for change in self.changes]
        versions = {"from": self.base, "to": self.target} if self.base is not None else {}
        return {"version": self.version, "is_new": self.is_new, "changes": changes, "cuts": list(self.cuts), **versions}


def proposed_schemas(
    settings: TopicConfig,
    state: LedgerState,
    *,
    file: Path,
    message: str | None,
    of_key: bool,
) -> Schemas:
    """With several message types, `file` replaces or adds `message`. Raises ConfigError."""
    newest = _newest(state)
    key, value = newest.key_schema, newest.value_schema
    side, today = (settings.key, key) if of_key else (settings.value, value)
    proposed = ProposedFile(path=file, message=message, topic=settings.name, today=today)
    read = FORMATS.next_schema(proposed, side)
    return Schemas(key=read, value=value) if of_key else Schemas(key=key, value=read)


def compare(state: LedgerState, proposed: Schemas, settings: TopicConfig | None = None) -> SchemaDiff:
    """Without `settings`, columns have default options."""
    newest = state.versions[-1].version
    outcome = assign(
        state,
        key=proposed.key,
        value=proposed.value,
        options=NEW_TABLES if settings is None else mapping_options(settings),
        partition_source=(settings and settings.partition_source) or _newest(state).partition_source,
    )
    is_new = outcome.version > newest
    cuts = sorted(_cuts(outcome.row) - _cuts(_newest(state))) if is_new else ()
    return SchemaDiff(version=outcome.version, is_new=is_new, newest=newest, changes=outcome.changes, cuts=tuple(cuts))


def schemas_of(state: LedgerState, version: int, *, topic: str) -> RowMapping:
    """Raises ConfigError if the topic has no such version."""
    for entry in state.versions:
        if entry.version == version:
            return row_mapping_from_text(entry.mapping)
    numbers = [entry.version for entry in state.versions]
    raise ConfigError(f"the topic has no schema version {version}", topic=topic, versions=numbers)


def compare_since(state: LedgerState, base: int, proposed: Schemas | int, settings: TopicConfig) -> SchemaDiff:
    """As if all rows had version `base`. Raises ConfigError if the topic has no such version."""
    before = schemas_of(state, base, topic=settings.name)
    options = mapping_options(settings)
    if isinstance(proposed, int):
        after = schemas_of(state, proposed, topic=settings.name)
        key, value, options = after.key_schema, after.value_schema, after.options
    else:
        key, value = proposed.key, proposed.value
    first = assign(
        LedgerState(),
        key=before.key_schema,
        value=before.value_schema,
        options=before.options,
        partition_source=before.partition_source,
    )
    second = assign(first.state, key=key, value=value, options=options, partition_source=before.partition_source)
    return SchemaDiff(
        version=proposed if isinstance(proposed, int) else second.version,
        is_new=second.is_new,
        newest=base,
        changes=second.changes,
        cuts=tuple(sorted(_cuts(second.row) - _cuts(first.row))) if second.is_new else (),
        base=base,
        target=proposed if isinstance(proposed, int) else None,
    )


def compare_files(old: Path, new: Path, *, message: str, imports: Sequence[Path] = ()) -> SchemaDiff:
    """As if all rows had been written with `old`. Raises ConfigError.

    Files are descriptor sets or `.proto` files; `imports` are import roots.
    """
    files = (ProposedFile(path=file, message=message, imports=tuple(imports)) for file in (old, new))
    first, second = map(FORMATS.next_schema, files)
    return compare(assign(LedgerState(), value=first, options=NEW_TABLES).state, Schemas(key=None, value=second))


def _newest(state: LedgerState) -> RowMapping:
    return row_mapping_from_text(state.versions[-1].mapping)


def _cuts(row: RowMapping) -> set[str]:
    return {
        f"{root}.{cut.column}  {cut.message}: {cut.reason.value}"
        for root, mapping in (("key", row.key), ("val", row.value))
        for cut in mapping.cuts
    }
