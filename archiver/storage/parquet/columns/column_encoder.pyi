from collections.abc import Iterable, Sequence

import pyarrow as pa
import zstandard

class Rows:
    rows: int
    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None: ...

class Column:
    @property
    def name(self) -> str: ...
    def __init__(
        self,
        top: int,
        steps: Sequence[tuple[int, bool, int]],
        form: tuple[int, int, int, int],
        names: Sequence[str],
        *,
        encoding: int,
        compressor: zstandard.ZstdCompressor | None,
        has_statistics: bool,
        filter_size: int,
    ) -> None: ...

class Chunk:
    size: int
    unpacked: int
    start: int
    column_index: bytes | None
    offset_index: bytes
    bloom_filter: bytes | None
    distinct: tuple[int, ...] | tuple[bytes, ...] | None
    def metadata(self, filter_offset: int | None, filter_size: int) -> bytes: ...

class ChunkWriter:
    written: int
    def __init__(self, sink: pa.NativeFile, written: int) -> None: ...
    def write(self, column: Column, rows: Rows, most_distinct: int = ...) -> Chunk: ...
