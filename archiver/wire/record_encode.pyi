from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.wire.columns import Int64Array

class BatchWriter:
    def __init__(self, records: pa.RecordBatch, headers: npt.NDArray[Any], bounds: Int64Array) -> None: ...
    def write(self, first: int, end: int) -> npt.NDArray[np.uint8]: ...

def seal(data: npt.NDArray[np.uint8], position: Int64Array) -> None: ...
