"""Plans of erasures as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.errors import ConfigError
from archiver.records.where import Where
from archiver.upkeep.erase.offset_list import OffsetList
from archiver.upkeep.erase.plan import read_plan

WHERE = "where"


def plan(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_plan_names_records_of_each_topic(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").write_text("partition,offset\n0,7\n0,8\n")
    text = f"""
        reason = "request 114"
        [[erase]]
        topic = "orders"
        {WHERE} = "key = 'c-17'"
        [[erase]]
        topic = "clicks"
        offsets = ["1:3-4"]
        offsets_file = "clicks.csv"
    """
    erasure = read_plan(plan(tmp_path, text))
    orders, clicks = erasure.erasures
    assert erasure.reason == "request 114"
    assert (orders.topic, isinstance(orders.condition, Where)) == ("orders", True)
    assert clicks.condition == OffsetList({0: ((7, 9),), 1: ((3, 5),)})


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_text("[[erase]]\ntopic = 'clicks'\noffsets = ['1:3']\n", encoding="utf-8-sig")
    assert [erasure.topic for erasure in read_plan(file).erasures] == ["clicks"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[erase]]",
        "[[erase]]\ntopic = 'a'",
        f"[[erase]]\ntopic = 'a'\n{WHERE} = \"key = 'x'\"\noffsets = ['0:1']",
        f"[[erase]]\ntopic = 'a'\n{WHERE} = 'key ='",
        "[[erase]]\ntopic = 'a'\nwhen = 'now'\noffsets = ['0:1']",
        "[[erase]]\ntopic = 'a'\noffsets = ['0:1']\n[[erase]]\ntopic = 'a'\noffsets = ['0:2']",
        "[[erase]]\ntopic = 'a'\noffsets_file = 'none.csv'",
        "[[erase]]\ntopic = 'a'\noffsets = '0:1'",
        "reasons = 'x'\n[[erase]]\ntopic = 'a'\noffsets = ['0:1']",
        "not toml",
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        read_plan(plan(tmp_path, text))


def test_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read_plan(tmp_path / "none.toml")


def test_plan_refuses_the_list_of_another_topic(tmp_path: Path) -> None:
    (tmp_path / "hers.jsonl").write_text('{"topic": "orders", "partition": 0, "offset": 1}\n')
    text = "[[erase]]\ntopic = 'clicks'\noffsets_file = 'hers.jsonl'"
    with pytest.raises(ConfigError, match="a record of another topic"):
        read_plan(plan(tmp_path, text))
