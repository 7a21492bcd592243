import pyarrow as pa

from schema_mapping.protobuf.kernel.tables import Tables

class Encoded:
    @property
    def data(self) -> pa.Buffer: ...
    @property
    def offsets(self) -> pa.Buffer: ...

def encode_rows(tables: Tables, capsule: object, *, guess: int, wide: bool) -> Encoded: ...
