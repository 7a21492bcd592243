"""Values that engines leave out because a partition's truncation wraps (`truncation`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from catalog.iceberg.truncation import NEVER_NEGATIVE, highest_wrapped, lowest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenValues:
    """Values [`low`, `high`] that engines' filters miss, only in files of an earlier spec if not `is_current`."""

    column: str
    transform: str
    low: int
    high: int
    is_current: bool = True


def hidden_values(
    metadata: TableMetadata, manifests: Callable[[Snapshot], Iterable[ManifestFile]]
) -> tuple[HiddenValues, ...]:
    """Of all specs with files. Raises the errors of reading manifests."""
    specs = {spec.spec_id: tuple(_of_spec(metadata, spec)) for spec in metadata.partition_specs}
    snapshot = metadata.current_snapshot()
    used = {metadata.default_spec_id}
    if snapshot is not None and any(values for spec_id, values in specs.items() if spec_id not in used):
        listed = manifests(snapshot)
        used |= {
            manifest.partition_spec_id
            for manifest in listed
            if manifest.has_added_files() or manifest.has_existing_files()
        }
    current = dict.fromkeys(specs.get(metadata.default_spec_id, ()))
    earlier = dict.fromkeys(value for spec_id, values in specs.items() if spec_id in used for value in values)
    return (*current, *(replace(value, is_current=False) for value in earlier if value not in current))


def _of_spec(metadata: TableMetadata, spec: PartitionSpec) -> Iterator[HiddenValues]:
    """Older files keep the ranges of each type that a column had."""
    for field in spec.fields:
        if field.source_id in NEVER_NEGATIVE:
            continue
        transform = str(field.transform)
        schemas = [
            candidate for candidate in (metadata.schema(), *metadata.schemas) if field.source_id in candidate.field_ids
        ]
        ranges = {range_ for schema in schemas if (range_ := _range(transform, schema, field.source_id)) is not None}
        for low, high in sorted(ranges):
            name = schemas[0].find_column_name(field.source_id) or field.name
            yield HiddenValues(column=name, transform=transform, low=low, high=high)


def _range(transform: str, schema: Schema, field_id: int) -> tuple[int, int] | None:
    kind = schema.find_type(field_id)
    high = highest_wrapped(transform, kind)
    return None if high is None else (lowest_of(kind), high)
