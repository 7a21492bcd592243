from typing import Any, Final

import numpy as np
import numpy.typing as npt

from archiver.errors import ArchiverError

HEADER_BYTES: Final = 61
CHECKSUM_START: Final = 21
HEADER: np.dtype[Any]

def scan(data: npt.NDArray[np.uint8], end_offset: int) -> tuple[npt.NDArray[Any], bool, ArchiverError | None]: ...
def control_type(records: npt.NDArray[np.uint8]) -> int: ...
