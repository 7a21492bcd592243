"""Finds the delete files of a data file (Iceberg's scan planning)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.delete_file_index import PATH_FIELD_ID, DeleteFileIndex
from pyiceberg.typedef import Record

from archiver.archive.deletion_vectors import ENTRY_VERSION, is_vector, vector_place
from archiver.archive.file_columns import as_text, values_of


class DeleteIndex:
    """The delete files of one snapshot. Thread-safe."""

    def __init__(self, entries: Iterable[ManifestEntry], specs: Mapping[int, PartitionSpec]) -> None:
        self._positions = DeleteFileIndex()
        self._equalities: list[tuple[int, str, DataFile]] = []
        self._unpartitioned = {spec_id for spec_id, spec in specs.items() if spec.is_unpartitioned()}
        for entry in entries:
            file = entry.data_file
            partition = as_text(values_of(file.partition))
            if file.content == DataFileContent.POSITION_DELETES:
                self._positions.add_delete_file(entry, partition_key=Record(partition))
            else:
                self._equalities.append((entry.sequence_number or 0, partition, file))
        self._positions.referenced_delete_files()  # it sorts now; later threads would do it without a lock

    def positions(self, path: str, sequence: int, spec_id: int, place: str) -> tuple[DataFile, ...]:
        if self._positions.is_empty():
            return ()
        file = DataFile.from_args(file_path=path)
        file.spec_id = spec_id
        deletes = self._positions.for_data_file(sequence, file, partition_key=Record(place))
        return tuple(sorted(deletes, key=lambda delete: delete.file_path))

    def equalities(self, sequence: int, spec_id: int, place: str) -> tuple[DataFile, ...]:
        return tuple(
            file
            for later, where, file in self._equalities
            if later > sequence and (file.spec_id in self._unpartitioned or (file.spec_id, where) == (spec_id, place))
        )


def without_metrics(entry: ManifestEntry) -> ManifestEntry:
    """Drop metrics except bounds of data file paths, which matching needs."""
    file = entry.data_file
    location = vector_place(file)
    of = location["referenced_data_file"] if is_vector(file) else None
    bounds = {} if of is None else {PATH_FIELD_ID: of.encode()}
    entry.data_file = slim = DataFile.from_args(
        ENTRY_VERSION,
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        lower_bounds=bounds or _of_paths(file.lower_bounds),
        upper_bounds=bounds or _of_paths(file.upper_bounds),
        key_metadata=file.key_metadata,
        equality_ids=file.equality_ids,
        **location,
    )
    slim.spec_id = file.spec_id
    return entry


def _of_paths(bounds: Mapping[int, Any] | None) -> dict[int, Any]:
    bound = (bounds or {}).get(PATH_FIELD_ID)
    return {} if bound is None else {PATH_FIELD_ID: bound}
