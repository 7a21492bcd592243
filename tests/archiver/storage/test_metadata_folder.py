"""Objects of metadata: written, listed, read, deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver.errors import BadSegment
from archiver.storage.metadata_folder import MetadataFolder
from archiver.storage.objects import ObjectStore
from catalog.errors import RegistryOutdated
from catalog.record_metadata import OfOffsets
from tests.support.archive.metadata_entries import entry_of

ENTRIES = (entry_of(b"jane", "case", "12", seconds=1), entry_of(OfOffsets(0, 1, 2), "case", None, seconds=2))


@pytest.fixture
def folder(tmp_path: Path) -> MetadataFolder:
    folder = MetadataFolder(path=(tmp_path / "metadata").as_uri(), objects=ObjectStore())
    folder.write(ENTRIES)
    return folder


def test_entries_are_read_as_written(folder: MetadataFolder) -> None:
    assert folder.ids() == {entry.id for entry in ENTRIES}
    assert folder.read(folder.ids()) == ENTRIES


def test_a_deleted_entry_is_left_out(folder: MetadataFolder) -> None:
    ids = folder.ids()
    folder.delete(ENTRIES[0].id)
    folder.delete(ENTRIES[0].id)
    assert folder.read(ids) == ENTRIES[1:]


def test_an_entry_of_a_newer_archiver_is_refused(folder: MetadataFolder) -> None:
    path = f"{folder.path}/new.json"
    folder.objects.write(path, json.dumps({**ENTRIES[0].to_json(), "format": 2}).encode())
    with pytest.raises(RegistryOutdated):
        folder.read({"new"})


@pytest.mark.parametrize("data", [b"", b"{", b'{"format":1}'])
def test_a_damaged_entry_is_named(folder: MetadataFolder, data: bytes) -> None:
    folder.objects.write(f"{folder.path}/bad.json", data)
    with pytest.raises(BadSegment) as caught:
        folder.read({"bad"})
    assert caught.value.context["file"] == f"{folder.path}/bad.json"
