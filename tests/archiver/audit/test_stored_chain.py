"""A registry's state from a stored trail."""

from __future__ import annotations

from pathlib import Path

from archiver.audit.acts import Began, ConfiguredHold, Evolved, Noted
from archiver.audit.stored_chain import StoredChain
from tests.support.archive.audit_trails import UUID_, Written, appended


def test_last_schema_version_and_configured_hold_are_known(tmp_path: Path) -> None:
    trail = Written.begin(tmp_path / "made")
    trail.add(Began(is_new=True), Evolved(version=2, fingerprint="f"), ConfiguredHold(change=1), appended(1))
    kept = StoredChain.read(trail.folder, UUID_)
    assert (kept.broken_at, kept.head.schema_version, kept.head.is_held_by_config) == (None, 2, True)
    trail.add(Noted(kind="release", id="release-1", details={"hold": "01J", "reason": "closed"}))
    assert StoredChain.read(trail.folder, UUID_).head.is_held_by_config, "that was another one"
    trail.add(ConfiguredHold(change=2))
    freed = StoredChain.read(trail.folder, UUID_).head
    assert (freed.config_holds, freed.is_held_by_config) == (2, False)


def test_each_change_of_a_configured_hold_has_its_own_name() -> None:
    changes = [ConfiguredHold(change=number) for number in (1, 2, 3)]
    assert [change.kind for change in changes] == ["hold", "release", "hold"]
    assert [change.id for change in changes] == ["hold-config-1", "release-config-2", "hold-config-3"]
