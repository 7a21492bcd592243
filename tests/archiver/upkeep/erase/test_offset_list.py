from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ConfigError
from archiver.upkeep.erase.offset_list import OffsetList

RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60)


def offsets(found: OffsetList) -> set[tuple[int, int]]:
    return {
        (partition, offset)
        for partition, spans in found.spans.items()
        for start, end in spans
        for offset in range(start, end)
    }


def test_options_name_offsets_and_ranges() -> None:
    listed = OffsetList.parse(["0:1200-1209", "0:1210", "3:7"])
    assert listed.spans == {0: ((1200, 1211),), 3: ((7, 8),)}
    assert listed.text == "0:1200-1210,3:7-7"


@given(RECORDS)
def test_a_file_names_each_record(records: list[tuple[int, int]]) -> None:
    columns = [f"{partition},{offset}\n" for partition, offset in records]
    lines = [json.dumps({"topic": "orders", "partition": number, "offset": offset}) for number, offset in records]
    with_tabs = [line.replace(",", "\t") for line in columns]
    for listed in (columns, ["partition,offset\n", *columns], [*lines, "\n"], with_tabs):
        assert offsets(OffsetList.read(listed, topic="orders", name="list")) == set(records)


@given(RECORDS, RECORDS, st.dictionaries(st.integers(0, 3), st.integers(0, 45)))
def test_lists_are_joined_and_cut(
    one: list[tuple[int, int]], other: list[tuple[int, int]], ends: dict[int, int]
) -> None:
    first, second = (
        OffsetList.read([f"{p},{o}" for p, o in pairs], topic="orders", name="list") for pairs in (one, other)
    )
    joined = first.joined_with(second)
    assert offsets(joined) == {*one, *other}
    below = {(partition, offset) for partition, offset in {*one, *other} if offset < ends.get(partition, 0)}
    assert offsets(OffsetList(joined.within(ends))) == below


@pytest.mark.parametrize("text", ["1200", "0:", "0:5-4", "0:-1", "a:1", "0:1-", f"0:{2**63 - 1}"])
def test_an_option_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--offsets"):
        OffsetList.parse([text])


@pytest.mark.parametrize(
    "line",
    [
        '{"a":' * 100_000,
        '{"partition": 0, "offset": 1, "value": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "\ufeff0,1",
        "0",
        "0,",
        "x,1",
        "0,1,2",
        '{"partition": 0}',
        '{"partition": 0, "offset": "1"}',
        '{"offset"',
        "[0, 1]",
        "-1,3",
    ],
)
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(ConfigError, match="has a line for each record") as error:
        OffsetList.read(["0,1", line], topic="orders", name="gone.csv")
    assert (error.value.context["file"], error.value.context["line"]) == ("gone.csv", 2)


@pytest.mark.parametrize("first", ["0,7", "partition,offset", '{"partition": 0, "offset": 7}'])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, first: str) -> None:
    file = tmp_path / "gone.csv"
    file.write_text(f"{first}\n0,7\n", encoding="utf-8-sig")
    assert OffsetList.of_file(file, topic="orders").spans == {0: ((7, 8),)}
    with file.open(encoding="utf-8") as lines:
        assert OffsetList.read(lines, topic="orders", name="standard input").spans == {0: ((7, 8),)}


def test_a_list_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "gone.csv"
    file.write_text("0,7\n", encoding="utf-16")
    with pytest.raises(ConfigError, match="write it in UTF-8") as error:
        OffsetList.of_file(file, topic="orders")
    assert error.value.context["file"] == str(file)
    with file.open(encoding="utf-8") as lines, pytest.raises(ConfigError, match="write it in UTF-8"):
        OffsetList.read(lines, topic="orders", name="standard input")


def test_list_of_another_topic_is_refused() -> None:
    """Output of `--show` for one topic must not erase records of another at the same offsets."""
    lines = ['{"topic": "orders", "partition": 0, "offset": 1}', '{"topic": "clicks", "partition": 0, "offset": 2}']
    with pytest.raises(ConfigError, match="a record of another topic") as error:
        OffsetList.read(lines, topic="orders", name="hers.jsonl")
    context = error.value.context
    assert (context["file"], context["line"], context["topic"], context["found"]) == (
        "hers.jsonl",
        2,
        "orders",
        "clicks",
    )
