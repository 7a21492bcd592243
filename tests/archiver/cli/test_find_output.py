"""The output of `archiver find`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from archiver.archive.records import AS_CONSUMED, AS_DECODED
from archiver.cli.find_output import FindOutput
from archiver.errors import ConfigError
from archiver.find.opening import chosen_topics
from archiver.find.query import FindQuery
from archiver.find.report import FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource
from tests.support.archive.shop_of_two_schemas import Shop


def output(
    shop: Shop, *, as_json: bool = False, decoded: bool = True, where: str = "val.id in (7, 14, 25)"
) -> FindOutput:
    query, report = FindQuery.parse(where=where), FindReport()

    def opens(bounded: Any) -> Any:
        return shop.lake.archive(ledger=lambda *_: shop.made.state, bounded=bounded)

    shape = AS_DECODED if decoded else AS_CONSUMED
    search = Search(query=query, sources=[FindSource.open(query, opens, report)], report=report, shape=shape)
    return FindOutput(search, as_json=as_json, explain=True)


@pytest.fixture
def shop(tmp_path: Path, archive: Any) -> Shop:
    return Shop(tmp_path, archive, broken=14)


def test_records_as_a_table_and_what_was_read(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(shop).records("table") == 2
    shown = capsys.readouterr()
    assert [line.split()[:3] for line in shown.out.splitlines()] == [
        ["topic", "partition", "offset"],
        ["orders", "0", "25"],
        ["orders", "0", "7"],
    ]
    assert '{"id":"7","name":"h"}' in shown.out
    assert "1 record can't be judged by the condition's columns and may match" in shown.err
    assert "manifests: 3 files; ruled out none; 3 files opened" in shown.err
    assert "rows: 30 judged, 2 matched, 2 read by position, 1 can't be judged" in shown.err


def test_records_as_json_lines(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(shop, as_json=True).records("jsonl") == 2
    shown = capsys.readouterr()
    assert [json.loads(line)["value"]["id"] for line in shown.out.splitlines()] == ["25", "7"]
    summary = json.loads(shown.err)
    assert (summary["event"], summary["records"], len(summary["notes"])) == ("found", 2, 1)
    assert summary["explain"]["files"] == 3
    assert summary["explain"]["unjudged_records"] == 1


def test_records_as_arrow(shop: Shop, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert output(shop, decoded=False).records("arrow") == 2
    table = pa.ipc.open_stream(capfdbinary.readouterr().out).read_all()
    assert table.column("topic").to_pylist() == ["orders", "orders"]
    assert table.column("value").to_pylist() == [shop.values[25], shop.values[7]]


def test_a_count_and_files(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(shop).count() == 2
    assert capsys.readouterr().out == "2\n"
    assert output(shop, where="val.id = 25 and offset > 20").files() == 1
    assert capsys.readouterr().out.endswith(".parquet\n")
    assert output(shop, as_json=True, where="val.id = 25 and offset > 20").files() == 1
    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["topic"], line["records"]) == ("file", "orders", 10)


def test_topics_by_names_and_patterns(shop: Shop) -> None:
    config: Any = SimpleNamespace(sections=())
    tables: Any = SimpleNamespace(topics=lambda _known: ("orders", "orders-eu", "users"))
    assert chosen_topics(config, [], tables) == ["orders", "orders-eu", "users"]
    assert chosen_topics(config, ["b", "a", "b"], tables) == ["a", "b"], "names aren't looked up"
    assert chosen_topics(config, ["orders*", "x"], tables) == ["orders", "orders-eu", "x"]
    with pytest.raises(ConfigError, match=r"no archived topic has such a name .*similar=\['users'\]"):
        chosen_topics(config, ["user?x*"], tables)
