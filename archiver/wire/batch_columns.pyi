from typing import Any

import numpy.typing as npt
import pyarrow as pa

from archiver.wire.columns import Int64Array

def batch_columns(headers: npt.NDArray[Any], kept: Int64Array, rows: Int64Array) -> dict[str, pa.Array]: ...
