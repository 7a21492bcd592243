"""Assign a topic's columns, for a new version with its first records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from archiver.files.unapproved import WaitingMapping
from archiver.schemas import mapping_options
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.topics.partitioning import partition_source
from archiver.topics.schema_choice import OnSchemaChange, SchemaChoice, choose_version
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.ledger import DeclaredColumns, refuse_raw, unchanged_columns
from catalog.registry.ledger_rows import SeenLedger
from schema_mapping.field_ids import Assignment
from schema_mapping.row import PartitionSource


def columns_of(schemas: TopicSchemas, source: PartitionSource) -> DeclaredColumns:
    return DeclaredColumns(
        key=schemas.key, value=schemas.value, options=mapping_options(schemas.config), partition_source=source
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAssigner:
    """`accept_raw` consents to becoming raw, and to the breaking changes."""

    topic: TopicRow
    schemas: TopicSchemas
    registry: Registry
    columns: DeclaredColumns
    accept_raw: bool = False

    @classmethod
    def of(
        cls,
        topic: TopicRow,
        schemas: TopicSchemas,
        registry: Registry,
        table: ArchiveTable | None,
        *,
        accept_raw: bool = False,
    ) -> Self:
        columns = columns_of(schemas, partition_source(schemas.config, table))
        return cls(topic=topic, schemas=schemas, registry=registry, columns=columns, accept_raw=accept_raw)

    @property
    def policy(self) -> OnSchemaChange:
        return "apply" if self.accept_raw else self.schemas.config.on_schema_change

    def assign(self, table: ArchiveTable | None, *, expected: Assignment | None = None) -> Assignment:
        """Raises like `assign_columns`."""
        return self.registry.ledger.assign(
            self.topic, self.columns, table=table, expected=expected, accept_raw=self.accept_raw
        )

    def choose(self, table: ArchiveTable, seen: SeenLedger | None = None, *, keeps: bool = True) -> SchemaChoice:
        """Store no new version. Raises like `assign_columns`.

        With `keeps`, the registry records a reused version and the waiting change.
        """
        if seen is None:
            seen = self.registry.ledger.read_together([self.topic]).get(self.topic.id)
        if seen is None or not seen.state.versions:
            return SchemaChoice(in_force=self.assign(table))
        unchanged = unchanged_columns(seen, self.columns, table=table, accept_raw=self.accept_raw)
        if unchanged is not None:
            choice = SchemaChoice(in_force=unchanged)
        else:
            choice = self._choose_changed(table, seen, keeps=keeps)
        if keeps:
            self._note_waiting(choice, seen)
        return choice

    def _choose_changed(self, table: ArchiveTable, seen: SeenLedger, *, keeps: bool) -> SchemaChoice:
        state = seen.state.at_least(table.last_column_id)
        if not self.accept_raw:
            refuse_raw(self.topic, state, self.columns)
        self.registry.ledger.check_table(self.topic, table)
        candidate = self.columns.assign(state, now=seen.now if keeps else None)
        if not candidate.is_new:
            return SchemaChoice(in_force=self.assign(table, expected=candidate) if keeps else candidate)
        return choose_version(
            state,
            candidate,
            policy=self.policy,
            has_records=bool(table.offsets) or bool(self.registry.files.accepted_ends(self.topic)),
            approved=self.registry.schema_changes.of_topics([self.topic])[self.topic.id],
        )

    def _note_waiting(self, choice: SchemaChoice, seen: SeenLedger) -> None:
        waiting = choice.waiting
        if waiting is not None:
            self.registry.schema_changes.note_waiting(
                self.topic,
                base_version=waiting.base_version,
                fingerprint=waiting.candidate.fingerprint,
                changes=waiting.changes,
            )
        elif seen.has_waiting:
            self.registry.schema_changes.forget_waiting(self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVersion:
    assignment: Assignment
    assigner: ColumnAssigner

    def store(self, table: ArchiveTable) -> Assignment:
        """With the first records. Raises ColumnsMoved if another process changed the columns."""
        return self.assigner.assign(table, expected=self.assignment)


def waiting_mapping(choice: SchemaChoice, schemas: TopicSchemas) -> WaitingMapping | None:
    if choice.waiting is None:
        return None
    return WaitingMapping(
        row=choice.waiting.candidate.row,
        key_envelope=schemas.key_envelope,
        value_envelope=schemas.value_envelope,
    )
