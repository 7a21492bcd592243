import pyarrow as pa

from schema_mapping.avro.kernel.tables import Tables

class AvroValues:
    def __init__(
        self,
        *,
        validity: int,
        offsets: int,
        data: int,
        prefixes: int,
        writers: int,
        start: int,
        length: int,
        large: bool,
    ) -> None: ...

class AvroDecoder:
    refuse_all: bool
    def __init__(self, tables: Tables, *, value_memory: int) -> None: ...
    def feed(self, values: AvroValues) -> None: ...
    def rows(self) -> list[int]: ...
    def replaced_rows(self, space: int) -> bytes | None: ...
    def take(self, column: int) -> tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None] | None: ...
