from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

OPS: dict[str, int]
FIELD_FLAGS: dict[str, int]
NODE_FLAGS: dict[str, int]
OUTPUTS: dict[str, int]

class Tables:
    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], *, root: Mapping[str, int], keep_raw: bool) -> None: ...

def name_hash(name: bytes) -> int: ...
