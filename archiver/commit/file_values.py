"""Records values of files. Failures are logged: without values, searches open more files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from archiver.errors import StorageError
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat
from catalog.errors import RegistryError
from catalog.model import DataFileInfo, TopicRow
from catalog.registry import Registry
from catalog.value_terms import ValueTerms

_LOG: Final = logging.getLogger(__name__)
_OPENED_AT_ONCE: Final = 16
_NOTED_AT_ONCE: Final = 1_000


def keep_values(registry: Registry, topic: TopicRow, files: Iterable[DataFileInfo]) -> None:
    """Raises nothing."""
    _note(registry, topic, {file.path: file.values for file in files if file.values is not None})


def restore_values(
    registry: Registry, topic: TopicRow, files: Mapping[str, SegmentFormat], objects: ObjectStore
) -> None:
    """Raises nothing."""

    def look(path: str) -> ValueTerms | None:
        try:
            with files[path].open(objects, path) as reader:
                sets = reader.value_sets.by_field
        except StorageError as error:
            _LOG.warning("%s: the values of the file can't be read: %s", topic.topic, error)
            return None
        return ValueTerms.of_sets(sets) if sets else None

    try:
        missing = registry.values.missing(topic, list(files))
    except RegistryError as error:
        _LOG.warning("%s: searches will open more files: %s", topic.topic, error)
        return
    with ThreadPoolExecutor(_OPENED_AT_ONCE, thread_name_prefix="values") as pool:
        for start in range(0, len(missing), _NOTED_AT_ONCE):
            part = missing[start : start + _NOTED_AT_ONCE]
            looked = zip(part, pool.map(look, part), strict=True)
            _note(registry, topic, {path: values for path, values in looked if values is not None})


def _note(registry: Registry, topic: TopicRow, values: Mapping[str, ValueTerms]) -> None:
    if not values:
        return
    try:
        registry.values.note(topic, values)
    except RegistryError as error:
        _LOG.warning("%s: the values of new files aren't recorded, so searches open more files: %s", topic.topic, error)
