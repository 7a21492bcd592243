import pyarrow as pa

def sum_of_hashes(
    partition: pa.Int32Array,
    offset: pa.Int64Array,
    timestamp_type: pa.Int32Array,
    timestamp: pa.Int64Array,
    key: pa.BinaryArray,
    value: pa.BinaryArray,
    headers: pa.ListArray,
) -> int: ...
def murmur3_x64_128(data: bytes | bytearray | memoryview) -> int: ...
