from typing import Any

import numpy as np
import numpy.typing as npt

from archiver.wire.arrow_output import RecordOutput
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
    ) -> tuple[RecordOutput, Int64Array, Int64Array, Int64Array, Int64Array, npt.NDArray[np.uint8]]: ...
