"""Names and values that are refused, and what the audit trail gets of an entry."""

from __future__ import annotations

import json

import pytest

from archiver.errors import ConfigError
from archiver.upkeep.metadata import MOST_VALUE, act_of, check_name, check_value
from catalog.record_metadata import OfOffsets
from tests.support.archive.metadata_entries import entry_of


@pytest.mark.parametrize("name", ["", "1a", "a b", "é", "a=b", "a\n", "x" * 129])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="begins with a letter"):
        check_name(name)


@pytest.mark.parametrize("name", ["case", "_x", "gdpr.request:7-b", "x" * 128])
def test_a_good_name_is_taken(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("value", ["a\x00", "a\nb", "\x1b[31m", "\x85", "\ud800", "é" * (MOST_VALUE // 2 + 1)])
def test_a_bad_value_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="value"):
        check_value("case", value)


@pytest.mark.parametrize("value", ["", " a = b ", "é" * (MOST_VALUE // 2), "💡"])
def test_a_good_value_is_taken(value: str) -> None:
    check_value("case", value)


def test_the_trail_gets_no_key_and_no_value() -> None:
    entries = [entry_of(b"jane-doe", "case", "very-secret"), entry_of(OfOffsets(1, 5, 9), "case", "very-secret")]
    act = act_of(entries, "set")
    text = json.dumps(act.to_json())
    assert "jane" not in text
    assert b"jane-doe".hex() not in text
    assert "secret" not in text
    assert [part["sha256"] for part in act.details["entries"]] == [entry.digest for entry in entries]
    assert [part.get("offsets") for part in act.details["entries"]] == [None, {"1": [[5, 9]]}]
