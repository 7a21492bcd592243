"""Offsets of rows, joined to spans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def offset_spans(offsets: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the half-open spans without a gap of offsets in any order."""
    distinct = np.unique(offsets)
    starts = distinct[np.diff(distinct, prepend=distinct[:1] - 2) != 1]
    ends = distinct[np.diff(distinct, append=distinct[-1:] + 2) != 1] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
