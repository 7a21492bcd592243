"""Finds batches by their headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archiver.errors import CorruptBatch
from archiver.wire.batch_header import Walk
from archiver.wire.inflate import Inflater
from archiver.wire.message_set import first_offset
from archiver.wire.wrapper import inflate_wrapper


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBatches:
    """`error` must be raised after the batches."""

    headers: npt.NDArray[Any]
    next_range_seen: bool
    error: CorruptBatch | None


def find_batches(data: npt.NDArray[np.uint8], end_offset: int, inflater: Inflater) -> FoundBatches:
    """Omit a truncated last batch."""
    walk = Walk(data, end_offset)
    error = None
    try:
        while walk.step() and walk.place(_wrapped_from(data, walk.wrapper, inflater)):
            pass
    except CorruptBatch as raised:
        error = raised
    return FoundBatches(headers=walk.headers, next_range_seen=walk.next_range_seen, error=error or walk.error)


def _wrapped_from(data: npt.NDArray[np.uint8], header: npt.NDArray[Any], inflater: Inflater) -> int:
    start = int(header["position"])
    message = data[start : start + int(header["size"])]
    return first_offset(inflate_wrapper(inflater, message, header), np.array([header]))
