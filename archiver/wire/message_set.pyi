from typing import Any

import numpy.typing as npt

def first_offset(messages: memoryview, header: npt.NDArray[Any]) -> int: ...
