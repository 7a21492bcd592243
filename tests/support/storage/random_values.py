"""Values of one type in shapes that affect encodings and statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.support.storage.shredded_rows import is_text

SHAPES: Final = ("constant", "few", "runs", "rising", "falling", "random", "extremes", "narrow")
DAY: Final = 86_400_000_000
_RARE: Final = {
    "float": (0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e300, 1.5),
    "text": ("", "ä", "\U0010ffff", "\ud7ff", "a\0b", "\0", "~" * 200, "é" * 40, "\U0001f600" * 17),
}
_RUNS: Final = (1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 63, 64, 65, 504, 505, 511, 512, 513)
_TAME_DAYS: Final = 40_000


def values_of(
    kind: pa.DataType, size: int, shape: str, dice: np.random.Generator, *, is_tame: bool = False
) -> pa.Array:
    """`is_tame`: within a century of 1970."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, values_of(kind.storage_type, size, shape, dice))
    for fits, made in _MAKERS.items():
        if fits(kind):
            return made(kind, size, shape, dice)
    width = np.dtype(f"int{kind.bit_width}")
    low, high = _range(kind, is_tame=is_tame)
    return pa.array(_integers(size, shape, dice, low, high).astype(width)).view(kind)


def _range(kind: pa.DataType, *, is_tame: bool) -> tuple[int, int]:
    if pa.types.is_time(kind):
        return 0, DAY - 1
    if is_tame and pa.types.is_temporal(kind):
        high = _TAME_DAYS if pa.types.is_date(kind) else _TAME_DAYS * DAY * (1000 if kind.unit == "ns" else 1)
        return -high, high
    limits = np.iinfo(f"int{kind.bit_width}")
    return int(limits.min), int(limits.max)


def _integers(size: int, shape: str, dice: np.random.Generator, low: int, high: int) -> npt.NDArray[np.int64]:
    def drawn(count: int) -> npt.NDArray[np.int64]:
        return dice.integers(low, high, count, endpoint=True)

    if shape in ("constant", "few", "runs"):
        several = drawn({"constant": 1, "few": int(dice.integers(1, 40)), "runs": 5}[shape])
        return several[places(size, shape, len(several), dice)]
    if shape in ("rising", "falling"):
        steps = np.cumsum(dice.integers(0, int(dice.choice((1, 3, 1000))), size, endpoint=True))
        first = min(max(low, int(dice.integers(-1000, 1000))), high)
        result = np.clip(first + steps, low, high)
        return result if shape == "rising" else result[::-1].copy()
    if shape == "extremes":
        near = np.array([low, high, low, high, low + 1, high - 1, (low + high) // 2], np.int64)
        return near[dice.integers(len(near), size=size)]
    if shape == "narrow":
        bits = int(dice.integers(0, 21))
        return np.clip(dice.integers(0, 1 << bits, size), low, high)
    return drawn(size)


def places(size: int, shape: str, several: int, dice: np.random.Generator) -> npt.NDArray[np.int64]:
    if shape != "runs":
        return dice.integers(several, size=size)
    lengths = dice.choice(_RUNS, size=max(1, size))
    return np.repeat(dice.integers(several, size=len(lengths)), lengths)[:size]


def _booleans(_: pa.DataType, size: int, shape: str, dice: np.random.Generator) -> pa.Array:
    return pa.array(_integers(size, shape, dice, 0, 1).astype(bool))


def _floats(kind: pa.DataType, size: int, shape: str, dice: np.random.Generator) -> pa.Array:
    width = np.dtype(f"float{kind.bit_width}")
    if shape == "extremes":
        share = dice.random()  # all of one kind, sometimes: only NaNs, only zeros
        rare = np.array(_RARE["float"])
        if share < 0.4:
            rare = rare[[4]] if share < 0.15 else rare[:2] if share < 0.3 else rare[[1]]
        with np.errstate(over="ignore", under="ignore"):
            return pa.array(rare[dice.integers(len(rare), size=size)].astype(width))
    whole = _integers(size, shape, dice, -(2**40), 2**40)
    result = (whole / 7).astype(width)
    if shape == "random":
        result[dice.random(size) < 0.1] = np.nan
    return pa.array(result)


def _decimals(kind: pa.DataType, size: int, shape: str, dice: np.random.Generator) -> pa.Array:
    most = 10**kind.precision - 1
    narrow = min(most, 2**63 - 1)
    result: list[int] = _integers(size, shape, dice, -narrow, narrow).tolist()
    if most > narrow and shape in ("extremes", "random"):
        factor = most // narrow
        result = [value * factor for value in result]
    data = b"".join(item.to_bytes(16, "little", signed=True) for item in result)
    return pa.Array.from_buffers(kind, size, [None, pa.py_buffer(data)])


def _fixed(kind: pa.DataType, size: int, shape: str, dice: np.random.Generator) -> pa.Array:
    width = kind.byte_width
    if shape in ("constant", "few", "runs"):
        several = [dice.bytes(width) for _ in range(1 if shape == "constant" else 5)]
        result = [several[at] for at in places(size, shape, len(several), dice)]
    elif shape in ("rising", "falling", "narrow"):
        numbers = _integers(size, shape, dice, 0, 2 ** min(62, 8 * width) - 1)
        result = [int(number).to_bytes(max(8, width), "big")[-width:] for number in numbers]
    elif shape == "extremes":
        result = [bytes([(0, 127, 128, 255)[at]]) * width for at in dice.integers(4, size=size)]
    else:
        result = [dice.bytes(width) for _ in range(size)]
    return pa.array(result, kind)


def _texts(kind: pa.DataType, size: int, shape: str, dice: np.random.Generator) -> pa.Array:
    is_text = kind in (pa.string(), pa.large_string())
    if shape in ("constant", "few", "runs"):
        several = [_text(dice) for _ in range(1 if shape == "constant" else int(dice.integers(1, 40)))]
        result = [several[at] for at in places(size, shape, len(several), dice)]
    elif shape in ("rising", "falling", "narrow"):
        result = [f"shops/1/orders/{integer:012}-ü" for integer in _integers(size, shape, dice, 0, 10**11)]
    elif shape == "extremes":
        rare = (*_RARE["text"], "long " * 1200) if size < 200 else _RARE["text"]
        result = [rare[at] for at in dice.integers(len(rare), size=size)]
    else:
        result = [_text(dice) for _ in range(size)]
    if is_text:
        return pa.array(result, kind)
    start = b"\xff" * 20 if shape == "random" else b""
    return pa.array([start + item.encode() for item in result], kind)


def _text(dice: np.random.Generator) -> str:
    length = int(dice.choice((0, 1, 3, 8, 40)))
    return "".join(map(chr, dice.choice([97, 98, 233, 8364, 128512], size=length)))


_MAKERS: Final[dict[Callable[[pa.DataType], bool], Callable[..., pa.Array]]] = {
    pa.types.is_boolean: _booleans,
    pa.types.is_floating: _floats,
    pa.types.is_decimal: _decimals,
    pa.types.is_fixed_size_binary: _fixed,
    is_text: _texts,
}
