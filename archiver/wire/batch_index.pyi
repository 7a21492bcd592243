from typing import Any

import numpy as np
import numpy.typing as npt

from archiver.wire.columns import BatchIndex, Int64Array

def index_batches(
    headers: npt.NDArray[Any],
    kept: Int64Array,
    first_row: Int64Array,
    rows: Int64Array,
    in_order: npt.NDArray[np.uint8],
    timestamps: Int64Array,
) -> BatchIndex: ...
