"""What would change if a schema were deployed: makes the assignment that the job would make, without keeping it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver.config.model import ProtobufFormat, TopicConfig
from archiver.errors import ConfigError
from archiver.schemas import compile_proto, mapping_options, read_descriptor_set
from schema_mapping import (
    DeclaredSchema,
    LedgerState,
    SourceSchema,
    UnionSchema,
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
    side, now = (settings.key, newest.key) if of_key else (settings.value, newest.value)
    newest_message = now.messages[0] if len(now.messages) == 1 else None
    name = message or (side.message if isinstance(side, ProtobufFormat) else None) or newest_message
    if name is None:
        what = "has several message types" if now.messages else "has no schema yet"
        raise ConfigError(f"The topic {what}: name the message with --message", topic=settings.name)
    if isinstance(side, ProtobufFormat):
        read = _read(file, name, more=side.proto[1:], imports=side.imports, extensions=side.extensions)
    else:
        read = _read(file, name)
    key, value = newest.key_schema, newest.value_schema
    with_file = _with(read, key if of_key else value, settings.name)
    return Schemas(key=with_file, value=value) if of_key else Schemas(key=key, value=with_file)


def _read(
    file: Path, message: str, *, more: Sequence[Path] = (), imports: Sequence[Path] = (), extensions: Sequence[str] = ()
) -> SourceSchema:
    if file.suffix == ".proto":
        return compile_proto((file, *more), message, imports, extensions)
    return read_descriptor_set(file, message, extensions)


def _with(read: SourceSchema, today: DeclaredSchema | None, topic: str) -> DeclaredSchema:
    """Put a message that was read from a file into a side's schema."""
    match today:
        case UnionSchema():
            others = (member for member in today.members if member.message != read.message)
            return UnionSchema(members=(*others, read))
        case SourceSchema():
            return replace(read, envelope=today.envelope)
        case None:
            return read
        case _:
            raise ConfigError(
                "the topic's values aren't Protobuf, so a .proto can't be their next schema",
                topic=topic,
                format=today.format,
            )


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
    first, second = (_read(file, message, imports=imports) for file in (old, new))
    return compare(assign(LedgerState(), value=first).state, Schemas(key=None, value=second))


def _newest(state: LedgerState) -> RowMapping:
    return row_mapping_from_text(state.versions[-1].mapping)


def _cuts(row: RowMapping) -> set[str]:
    return {
        f"{root}.{cut.column}  {cut.message}: {cut.reason.value}"
        for root, mapping in (("key", row.key), ("val", row.value))
        for cut in mapping.cuts
    }
