"""Approve a topic's waiting or upcoming schema change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from archiver.schemas.topic_schemas import TopicSchemas
from archiver.topics.assigning import columns_of
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.columns.compatibility import broken_rules
from schema_mapping.columns.evolution import Change
from schema_mapping.row import row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Without `breaking` no approval is needed. `is_new` is false without a new version."""

    topic: str
    base_version: int
    fingerprint: str
    is_new: bool
    changes: tuple[Change, ...] = ()
    breaking: tuple[Change, ...] = ()
    is_approved: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "base_version": self.base_version,
            "fingerprint": self.fingerprint,
            "is_new": self.is_new,
            "approved": self.is_approved,
            "changes": [change.to_json() for change in self.changes],
            "breaking": [change.to_json() for change in self.breaking],
        }


def approve_change(
    row: TopicRow,
    schemas: TopicSchemas,
    registry: Registry,
    *,
    consent: Callable[[Approval], bool],
    by: str,
) -> Approval:
    """Only after the newest version. Raises DescriptorError for an unreadable schema."""
    seen = registry.ledger.read_together([row])[row.id]
    newest = seen.state.versions[-1]
    columns = columns_of(schemas, row_mapping_from_text(newest.mapping).partition_source)
    candidate = columns.assign(seen.state, now=seen.now)
    breaking = tuple(broken.change for broken in broken_rules(candidate.changes))
    approval = Approval(
        topic=row.topic,
        base_version=seen.state.newest,
        fingerprint=candidate.fingerprint,
        is_new=candidate.is_new,
        changes=candidate.changes,
        breaking=breaking,
    )
    if not breaking or not consent(approval):
        return approval
    registry.schema_changes.approve(
        row, base_version=approval.base_version, fingerprint=approval.fingerprint, changes=breaking, by=by
    )
    return replace(approval, is_approved=True)
