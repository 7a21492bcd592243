from typing import Any

import numpy.typing as npt
import pyarrow as pa

class RecordBuilder:
    @property
    def rows(self) -> int: ...
    def append(self, records: memoryview, headers: npt.NDArray[Any], index: int, keep_from: int) -> bool: ...
    def finish(self) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array, pa.Array]: ...
