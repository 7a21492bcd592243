import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.kernel.tables import Tables

class Encoded:
    @property
    def buffer(self) -> pa.Buffer: ...
    @property
    def size(self) -> int: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...

def encode_rows(tables: Tables, capsule: object, *, guess: int) -> Encoded: ...
