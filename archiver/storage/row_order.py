"""Whether rows are in the order of (partition, offset)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping import names

_Numbers: TypeAlias = npt.NDArray[np.signedinteger]


@dataclass(slots=True)
class RowOrder:
    """Equal rows are in order; rows without partition or offset aren't."""

    is_sorted: bool = True
    _last: tuple[int, int] | None = None

    def add(self, batches: Iterable[pa.RecordBatch]) -> bool:
        """Whether they are in order among themselves."""
        among, is_first = True, True
        for batch in batches:
            if not batch.num_rows:
                continue
            positions = _places(batch)
            if positions is None:
                self.is_sorted = among = False
                continue
            partitions, offsets = positions
            rises = (partitions[:-1] < partitions[1:]) | (
                (partitions[:-1] == partitions[1:]) & (offsets[:-1] <= offsets[1:])
            )
            is_sorted = bool(rises.all())
            follows = self._last is None or self._last <= (int(partitions[0]), int(offsets[0]))
            self.is_sorted &= is_sorted and follows
            among &= is_sorted and (is_first or follows)
            self._last = int(partitions[-1]), int(offsets[-1])
            is_first = False
        return among


def _places(batch: pa.RecordBatch) -> tuple[_Numbers, _Numbers] | None:
    at = batch.schema.get_field_index(names.KAFKA)
    if at < 0:
        return None
    kafka = batch.column(at)
    if not pa.types.is_struct(kafka.type) or kafka.null_count:
        return None
    if any(kafka.type.get_field_index(name) < 0 for name in (names.PARTITION, names.OFFSET)):
        return None
    partition, offset = kafka.field(names.PARTITION), kafka.field(names.OFFSET)
    if partition.null_count or offset.null_count:
        return None
    return partition.to_numpy(), offset.to_numpy()
