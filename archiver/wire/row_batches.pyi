from typing import Any

import numpy.typing as npt
import pyarrow as pa

from archiver.wire.columns import Int64Array

def batches_of(records: pa.RecordBatch, codec: int | None) -> tuple[npt.NDArray[Any], Int64Array]: ...
