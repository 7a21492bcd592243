"""Many rows of an archive's table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def rows_of(archive: Any, count: int, *, value: bytes = b"v", start: int = 10) -> pa.RecordBatch:
    seven = archive.batch(archive.row(offset=0, partition=3, key=b"k%d" % i, value=value) for i in range(7))
    places = np.arange(count)
    repeated = seven.take(pa.array(places % 7))
    kafka = repeated.column("kafka")
    columns = dict(zip((field.name for field in kafka.type), kafka.flatten(), strict=True))
    columns["offset"] = pa.array(start + places)
    columns["event_timestamp"] = pa.array((1_000 + places) * 1_000).cast(kafka.type.field("event_timestamp").type)
    filled = pa.StructArray.from_arrays(list(columns.values()), fields=list(kafka.type))
    return repeated.set_column(repeated.schema.get_field_index("kafka"), archive.schema.field("kafka"), filled)
