"""Formats, by name and extension."""

from __future__ import annotations

import pickle

import pytest

from archiver.errors import UnknownFormat
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.parquet import ParquetFormat
from tests.support.storage.arrow_format import ArrowFormat

BOTH = SegmentFormats(written=ArrowFormat(), others=(ParquetFormat(),))


def test_new_files_are_parquet_unless_others_are_given():
    assert isinstance(FORMATS.written, ParquetFormat)
    assert FORMATS.known == (FORMATS.written,)


def test_formats_are_found_by_name_and_by_the_end_of_a_path():
    assert BOTH.named("orc", "s3://b/f") == ArrowFormat()
    assert BOTH.named("parquet", "s3://b/f") == ParquetFormat()
    assert BOTH.of_path("s3://b/f.x/a.arrow") == ArrowFormat()
    assert BOTH.of_path("s3://b/f.x/a.parquet") == ParquetFormat()
    assert BOTH.extensions == {"arrow", "parquet"}


@pytest.mark.parametrize("path", ["s3://b/d.parquet/a", "s3://b/a.avro", "s3://b/a"])
def test_an_unknown_end_names_the_file(path: str):
    with pytest.raises(UnknownFormat, match=path):
        BOTH.of_path(path)


def test_an_unknown_name_names_the_file_and_what_is_read():
    with pytest.raises(UnknownFormat, match="file='s3://b/f', format='avro', reads='orc, parquet'"):
        BOTH.named("avro", "s3://b/f")


def test_formats_travel_to_tasks():
    assert pickle.loads(pickle.dumps(BOTH)) == BOTH


class Other(ArrowFormat):
    name = "arrow"


class Twin(ArrowFormat):
    name = "avro"


@pytest.mark.parametrize("others", [(ArrowFormat(),), (Twin(),), (Other(),)])
def test_names_are_icebergs_and_no_two_formats_share_one(others: tuple[ArrowFormat, ...]):
    with pytest.raises(ValueError, match="each their own"):
        SegmentFormats(written=ArrowFormat(), others=others)
