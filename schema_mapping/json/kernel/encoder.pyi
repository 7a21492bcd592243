from typing import Any

import numpy.typing as npt
import pyarrow as pa

from schema_mapping.json.kernel.tables import Tables

def encode_rows(
    tables: Tables, sources: npt.NDArray[Any], count: int, *, guess: int
) -> tuple[pa.Buffer, pa.Buffer]: ...
