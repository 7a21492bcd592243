"""Uploads to a real object store."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest

from archiver.storage.bounded_copy import AHEAD, copy
from archiver.storage.objects import ObjectStore
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

PART = 10 << 20
"""Bytes of a part of pyarrow's S3 streams: one may be filling while another is on its way."""


def test_memory_doesnt_follow_the_size_of_a_file(stack: Stack) -> None:
    # The stream itself would take it all at once, and hold what the store hasn't got yet.
    store = ObjectStore.of(stack.catalog_properties)
    path = f"s3://{stack.bucket}/{unique('upload')}"
    data = random.Random(1).randbytes(4 * AHEAD)
    before, most = pa.total_allocated_bytes(), 0

    class Watched:
        def __init__(self, stream: pa.NativeFile) -> None:
            self._stream = stream
            self.flush = stream.flush

        def write(self, part: bytes, /) -> int:
            nonlocal most
            self._stream.write(part)
            most = max(most, pa.total_allocated_bytes() - before)
            return len(part)

    with store.file_io(path).new_output(path).create(overwrite=True) as stream:
        copy(io.BytesIO(data), Watched(stream))
    assert most <= AHEAD + 2 * PART
    assert store.read(path) == data
