"""Bloom filters in files and rewrites."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.errors import ConfigError
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.row_filter import Reach, RowFilter
from tests.support.archive.job_runs import archive_once, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, WRONG, archived_wrongly, produce
from tests.support.catalog.foreign_writes import table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

FILTERS = {"bloom_filters": ["val.name", "key.__raw__"]}
ENABLED = "write.parquet.bloom-filter-enabled.column."
RENAMED = WRONG.replace("string name = 2;", "string title = 2;")


def filtered(stack: Stack, config: Path, topic: str) -> dict[str, frozenset[str]]:
    table = table_of(stack, config, topic)
    filters = {}
    for task in table.scan().plan_files():
        with table.io.new_input(task.file.file_path).open() as stream:
            footer = pq.read_metadata(stream)
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        columns = [[group.column(at) for at in range(group.num_columns)] for group in groups]
        sets = [{chunk.path_in_schema for chunk in column if chunk.bloom_filter_offset} for column in columns]
        filters[task.file.file_path] = frozenset.intersection(*map(frozenset, sets))
    return filters


def enabled(stack: Stack, config: Path, topic: str) -> set[str]:
    properties = table_of(stack, config, topic).properties
    return {
        key.removeprefix(ENABLED) for key, value in properties.items() if key.startswith(ENABLED) and value == "true"
    }


def test_bloom_filters_follow_their_column_in_all_rewrites(stack: Stack, tmp_path: Path, engine: SparkEngine) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path, **FILTERS)
    before = filtered(stack, config, topic)
    assert set(before.values()) == {frozenset({"val.name", "key.__raw__"})}
    assert enabled(stack, config, topic) == {"val.name", "key.__raw__"}

    proto.write_text(RENAMED)
    assert Reprocess(load_config(config), topic, RowFilter(reach=Reach.ALL), engine=InlineEngine()).run().commit_id
    rewritten = filtered(stack, config, topic)
    assert before.keys().isdisjoint(rewritten)
    assert set(rewritten.values()) == {frozenset({"val.title", "key.__raw__"})}
    assert enabled(stack, config, topic) == {"val.title", "key.__raw__"}

    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    name = load_config(config).topic(topic).table
    engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    ).collect()
    foreign = filtered(stack, config, topic)
    assert foreign.keys().isdisjoint(rewritten)
    # Parquet's Java writer leaves a filter out where a dictionary has all values of the row group.
    assert set().union(*foreign.values()) <= {"val.title", "key.__raw__"}
    assert all("val.title" in columns for columns in foreign.values())
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def test_a_list_that_changes_counts_for_new_files(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path)
    assert set(filtered(stack, config, topic).values()) == {frozenset()}
    said = config.read_text()
    for turn, (paths, expected) in enumerate(
        [('["val.name"]', {"val.name"}), ('["key.__raw__"]', {"key.__raw__"}), (None, {"key.__raw__"}), ("[]", set())]
    ):
        old = filtered(stack, config, topic)
        line = "" if paths is None else f'"bloom_filters" = {paths}\n'
        config.write_text(said.replace('"table" =', f'{line}"table" ='))
        produce(stack, topic, 2 + turn)
        archive_once(config, topic, engine=InlineEngine())
        new = filtered(stack, config, topic)
        assert {columns for path, columns in new.items() if path not in old} == {frozenset(expected)}
        assert enabled(stack, config, topic) == expected
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def test_unknown_bloom_filter_path_stops_the_topic_first(stack: Stack) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"v"})
    config = stack.config({topic: {"bloom_filters": ["val.nothing"]}})
    error = run(config, topic).topics[0].error
    assert isinstance(error, ConfigError)
    assert "'val.nothing': the table has no such column" in error.message
    assert not stack.catalog().table_exists(load_config(config).topic(topic).table)
