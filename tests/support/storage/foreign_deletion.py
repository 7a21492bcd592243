"""Objects that others delete: people, lifecycle rules, other tools. The archiver's gate isn't asked."""

from __future__ import annotations

from archiver.storage.objects import ObjectStore


def delete_object(objects: ObjectStore, path: str) -> None:
    """Delete an object, if there is one."""
    io = objects.file_io(path)
    if io.new_input(path).exists():
        io.delete(path)
