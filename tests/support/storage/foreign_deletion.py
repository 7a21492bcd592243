"""Objects deleted by people or other tools."""

from __future__ import annotations

from archiver.storage.objects import ObjectStore


def delete_object(objects: ObjectStore, path: str) -> None:
    io = objects.file_io(path)
    if io.new_input(path).exists():
        io.delete(path)
