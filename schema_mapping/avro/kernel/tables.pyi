from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

OPS: dict[str, int]

class Tables:
    def __init__(
        self, arrays: Mapping[str, npt.NDArray[Any]], *, specials: Mapping[str, int], keep_raw: bool
    ) -> None: ...

def symbol_hash(text: bytes) -> int: ...
