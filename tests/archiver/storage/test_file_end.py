"""A file's end and checksum."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import BadSegment
from archiver.storage.parquet.file_end import TAIL, FileEnd


def written(columns: int = 2) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({f"a column with the number {n}": [n] for n in range(columns)}), out)
    return out.getvalue()


def with_checksum(data: bytes) -> bytes:
    end = FileEnd.read(io.BytesIO(data))
    assert end.footer_start is not None
    return data[: end.footer_start] + end.with_checksum


class CutShort(io.BytesIO):
    def __init__(self, data: bytes, *, at: int, missing: int) -> None:
        super().__init__(data)
        self._at = at
        self._missing = missing

    def read(self, size: int | None = -1, /) -> bytes:
        result = super().read(size)
        self._at -= 1
        return result[: -self._missing] if self._at == -1 else result


@pytest.mark.parametrize("columns", [2, 600], ids=["small", "larger than the first read"])
def test_the_footer_is_read_whole_and_pyarrow_reads_it(columns: int):
    data = with_checksum(written(columns))
    end = FileEnd.read(io.BytesIO(data))
    assert (len(end.footer) > TAIL) == (columns == 600)
    assert end.footer_start is not None
    assert bytes(end.footer) == data[end.footer_start : -8]
    assert data[end.start :] == end.data
    for source in (end.data, data):
        assert pq.read_metadata(io.BytesIO(source)).num_columns == columns
    assert end.check("x")


def test_all_of_a_small_file_is_read():
    assert FileEnd.read(io.BytesIO(written())).is_whole
    long = bytes(TAIL) + written()
    assert not FileEnd.read(io.BytesIO(long)).is_whole


def test_a_footer_without_a_checksum_is_no_fault():
    assert not FileEnd.read(io.BytesIO(written())).check("x")


def test_a_wrong_checksum_names_the_file():
    data = bytearray(with_checksum(written()))
    data[-20] ^= 1
    with pytest.raises(BadSegment, match="restore the file") as raised:
        FileEnd.read(io.BytesIO(data)).check("s3://b/file")
    assert raised.value.context["file"] == "s3://b/file"


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\xff" * 100, b"PAR1" + bytes(4) + b"PAR1"])
def test_what_has_no_footer_has_no_checksum(data: bytes):
    end = FileEnd.read(io.BytesIO(data))
    assert not end.check("x")
    assert bytes(end.footer) == b""


@pytest.mark.parametrize("columns", [2, 600], ids=["small", "larger than the first read"])
@pytest.mark.parametrize("missing", [1, 12, 100])
@pytest.mark.parametrize("cut", [0, 1], ids=["first read", "second read"])
def test_an_answer_that_is_cut_short_is_no_damage(columns: int, missing: int, cut: int):
    """A short answer of a store or proxy doesn't mean that the file is short."""
    stream = CutShort(with_checksum(written(columns)), at=cut, missing=missing)
    if columns == 2 and cut == 1:
        assert FileEnd.read(stream).check("x")
        return
    with pytest.raises(ConnectionError, match="bytes"):
        FileEnd.read(stream)
