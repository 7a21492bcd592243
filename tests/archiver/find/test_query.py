"""One condition from all search options."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.find.query import FindQuery
from archiver.records.where_syntax import AllOf, AnyOf, BytesAre, Header, NumberIs


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({}, NumberIs("offset", ">=", 0)),
        ({"key": "a"}, BytesAre("key", "=", b"a")),
        ({"key": "0x00ff"}, BytesAre("key", "=", b"\x00\xff")),
        ({"headers": ["trace=a=b"]}, BytesAre(Header(b"trace"), "=", b"a=b")),
        ({"start": "7"}, NumberIs("offset", ">=", 7)),
        (
            {"start": "1970-01-01T00:00:01Z", "end": "9"},
            AllOf((NumberIs("time", ">=", 1_000), NumberIs("offset", "<", 9))),
        ),
        ({"partitions": [3, 1, 3]}, AnyOf((NumberIs("partition", "=", 1), NumberIs("partition", "=", 3)))),
        ({"where": "offset = 1", "key": ""}, AllOf((NumberIs("offset", "=", 1), BytesAre("key", "=", b"")))),
    ],
)
def test_options_make_one_condition(options: dict[str, Any], condition: object) -> None:
    assert FindQuery.parse(**options).where.condition == condition


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"headers": ["trace"]}, "--header is no name and value: write name=value"),
        ({"headers": ["=x"]}, "--header is no name and value"),
        ({"key": "0xabc"}, "--key: 0x begins bytes"),
        ({"start": "latest"}, "no record comes after the end of the archive"),
        ({"end": "earliest"}, "no record comes before the beginning"),
        ({"start": "9", "end": "3"}, "--from comes after --to"),
        ({"where": "1=1; DROP TABLE x"}, "at character 4: ';' means nothing here"),
        ({"where": "offset = 1; DROP"}, "at character 11: ';' means nothing here"),
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        FindQuery.parse(**options)
