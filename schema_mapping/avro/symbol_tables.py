"""The kernel's texts: symbols of enums, and forms of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schema_mapping.avro.kernel.tables import symbol_hash


class SymbolTables:
    def __init__(self) -> None:
        self._texts = bytearray()
        self._symbols: list[int] = []
        self._lookup: list[int] = []
        self._enums: dict[tuple[str, ...], tuple[int, int, int]] = {}

    def add(self, symbols: tuple[str, ...]) -> tuple[int, int, int]:
        """Return the first symbol, its place, and the mask of hashes."""
        if symbols not in self._enums:
            self._enums[symbols] = self._add(symbols)
        return self._enums[symbols]

    def arrays(self, forms: Sequence[str]) -> Mapping[str, npt.NDArray[Any]]:
        slots = [self._slot(form.encode()) for form in forms]
        return {
            "symbols": np.array(self._symbols or [0], dtype=np.uint64),
            "lookup": np.array(self._lookup or [0], dtype=np.int32),
            "forms": np.array(slots, dtype=np.uint64),
            "texts": np.frombuffer(bytes(self._texts) + b"\0", dtype=np.uint8),
        }

    def _add(self, symbols: tuple[str, ...]) -> tuple[int, int, int]:
        first, start = len(self._symbols), len(self._lookup)
        size = 1 << (2 * len(symbols)).bit_length()
        table = [0] * size
        for number, symbol in enumerate(symbols):
            text = symbol.encode()
            at = symbol_hash(text) & (size - 1)
            while table[at]:
                at = (at + 1) & (size - 1)
            table[at] = first + number + 1
            self._symbols.append(self._slot(text))
        self._lookup += table
        return first, start, size - 1

    def _slot(self, text: bytes) -> int:
        start = len(self._texts)
        self._texts += text
        return start << 32 | len(text)
