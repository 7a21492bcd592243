"""What Avro and JSON libraries wrote: every byte comes back, and how much of it must be kept raw."""

from __future__ import annotations

import pytest

from tests.writers.cases import read_cases, writers_of, written_by
from tests.writers.interop import WRITERS
from tests.writers.judge import RawShare, raw_share

VALUES = {"avro": 800, "json": 800}
KEPT_RAW = {"rapidjson": 26, "ruby-indented": 173}
"""The exceptions of docs/producers.md: needless digits, empty arrays in two lines."""
REFUSED = {"hamba": 4, "goavro": 5, "php": 15, "php-point": 15, "php-plain": 15}
"""Values that the library itself can't read or write in this way."""
SIZED_BLOCKS = {"hamba": 226}


def share_of(writer: str) -> RawShare:
    name = WRITERS[writer].format
    return raw_share(name, read_cases(name), written_by(name, writer))


@pytest.mark.parametrize("name", VALUES)
def test_every_writer_wrote_every_value(name: str) -> None:
    assert set(writers_of(name)) == {writer for writer, entry in WRITERS.items() if entry.format == name}
    assert len(read_cases(name)) == 200
    for writer in writers_of(name):
        assert [len(values) for values in written_by(name, writer)] == [len(case.values) for case in read_cases(name)]


@pytest.mark.parametrize("writer", [writer for writer, entry in WRITERS.items() if entry.format == "avro"])
def test_no_avro_is_kept_raw(writer: str) -> None:
    refused = REFUSED.get(writer, 0)
    assert share_of(writer) == RawShare(VALUES["avro"] - refused, 0, refused, SIZED_BLOCKS.get(writer, 0))


@pytest.mark.parametrize("writer", [writer for writer, entry in WRITERS.items() if entry.format == "json"])
def test_json_that_is_kept_raw(writer: str) -> None:
    share = share_of(writer)
    assert (share.raw, share.refused) == (KEPT_RAW.get(writer, 0), REFUSED.get(writer, 0))
