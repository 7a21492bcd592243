"""Columns are exported to Arrow once."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from archiver.wire import RECORDS, decode_batches
from archiver.wire.arrow_output import RecordOutput
from archiver.wire.batch_reader import BatchReader
from archiver.wire.find_batches import find_batches
from archiver.wire.inflate import Inflater
from archiver.wire.transactions import AbortedTransactions
from schema_mapping.kernel.blocks import in_use
from tests.support.kafka.record_batches import Record, build

ROWS = 2_000


class ArrowArray(ctypes.Structure):
    """Arrow's C data interface, for a consumer that isn't pyarrow."""


Release = ctypes.PYFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def array_in(capsule: object) -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ArrowArray.from_address(pointer(capsule, b"arrow_array"))


def taken(array: Any) -> ArrowArray:
    copy = ArrowArray.from_buffer_copy(array)
    array.release = None
    return copy


def release(array: ArrowArray) -> None:
    assert array.release is not None
    Release(array.release)(ctypes.byref(array))
    assert array.release is None


def fetched() -> bytes:
    records = [Record(key=b"k%d" % row, value=b"%01000d" % row, headers=(("a", b"%d" % row),)) for row in range(ROWS)]
    return build(records)


def read() -> RecordOutput:
    octets, inflater = np.frombuffer(fetched(), np.uint8), Inflater(limit=1 << 20)
    headers = find_batches(octets, ROWS, inflater).headers
    reader = BatchReader(octets, headers, AbortedTransactions(()), inflater, limit=1 << 30, chunk=1 << 30)
    reader.read(0, cut_head=False)
    return reader.finish()[0]


@pytest.fixture(autouse=True)
def no_garbage() -> None:
    gc.collect()


def test_no_records() -> None:
    none = decode_batches(b"", start_offset=0, end_offset=ROWS).records
    none.validate(full=True)
    assert (none.schema, none.num_rows) == (RECORDS, 0)


def test_columns_are_handed_over_once() -> None:
    output = read()
    assert pa.record_batch(output).num_rows == ROWS
    with pytest.raises(ValueError, match="handed over before"):
        pa.record_batch(output)


def test_memory_is_given_back_with_the_last_column() -> None:
    before = in_use()
    records = decode_batches(fetched(), start_offset=0, end_offset=ROWS).records
    records.validate(full=True)
    values = records.column("value")
    del records
    assert in_use() > before
    assert values[ROWS - 1].as_py() == b"%01000d" % (ROWS - 1)
    del values
    assert in_use() == before


def test_columns_that_nobody_takes_are_given_back() -> None:
    before = in_use()
    output = read()
    capsules = output.__arrow_c_array__()
    del capsules
    assert in_use() > before
    del output
    assert in_use() == before


def test_a_column_taken_out_outlives_the_others() -> None:
    before = in_use()
    _, capsule = read().__arrow_c_array__()
    whole = taken(array_in(capsule))
    headers = taken(whole.children[RECORDS.get_field_index("headers")].contents)
    del capsule
    release(whole)
    assert in_use() > before
    texts = headers.children[0].contents.children[1].contents
    assert ctypes.string_at(texts.buffers[2], 4) == b"0123"
    release(headers)
    assert in_use() == before


def memory_for_bytes() -> float:
    records = [
        Record(key=b"%016d" % row, value=b"%0200d" % row, headers=(("trace", b"%032d" % row),)) for row in range(200)
    ]
    data = b"".join(build(records, base_offset=base) for base in range(0, 20_000, 200))
    before = in_use()
    result = decode_batches(data, start_offset=0, end_offset=20_000).records
    assert result.num_rows == 20_000
    return (in_use() - before) / result.nbytes


def test_columns_take_little_more_memory_than_they_need() -> None:
    # In a process of its own: blocks that other tests gave back are kept, and larger ones serve as well.
    program = f"from {__name__} import memory_for_bytes; print(memory_for_bytes())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert 1 <= float(done.stdout) < 1.6
