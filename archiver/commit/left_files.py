"""Files that left the table and that the store still has."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from archiver.errors import StorageError
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import file_name
from catalog.ranges.replaced_files import ReplacedFile

_LOG = logging.getLogger(__name__)


def files_in_store(
    replaced: Sequence[ReplacedFile], table: ArchiveTable, objects: ObjectStore
) -> tuple[ReplacedFile, ...]:
    """Return files that the store lists, and all outside the table's location, which isn't listed.

    All if it lists none (the location was moved) or can't be listed: a row without a file is harmless.
    """
    if not replaced:
        return ()
    names = {file_name(file.path) for file in replaced}
    try:
        listed = {item.name for part in objects.walk(table.data_location) for item in part if item.name in names}
    except StorageError as error:
        _LOG.warning("%s: replaced files stay known, as the store doesn't list them: %s", table.topic.topic, error)
        return tuple(replaced)
    below = f"{table.data_location}/"
    left = tuple(file for file in replaced if not file.path.startswith(below) or file_name(file.path) in listed)
    return left if listed else tuple(replaced)
