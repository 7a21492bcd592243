from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.wire.columns import Int64Array
from archiver.wire.inflate import Inflater
from archiver.wire.transactions import AbortedTransactions

class BatchReader:
    done: int
    consumed: int
    start_offset: int
    next_offset: int

    def __init__(
        self,
        octets: npt.NDArray[np.uint8],
        headers: npt.NDArray[Any],
        aborted: AbortedTransactions,
        inflater: Inflater,
        *,
        limit: int,
        chunk: int,
    ) -> None: ...
    def read(self, start_offset: int, cut_head: bool) -> None: ...
    def finish(
        self,
    ) -> tuple[
        tuple[pa.Array, pa.Array, pa.Array, pa.Array, pa.Array],
        Int64Array,
        Int64Array,
        Int64Array,
        npt.NDArray[np.uint8],
    ]: ...
