"""The term store."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from archiver.chores.runner import ChoreRunner, ChoreTopic
from archiver.cli.app import app
from archiver.config import load_config
from archiver.find import find
from archiver.find.report import BY_INDEX
from archiver.index.columns import term_of_value
from archiver.records.where import Where
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.indexing import indexing
from tests.support.archive.forgotten import NAME, objects_with_her, registry_with_her
from tests.support.archive.job_runs import archive_once
from tests.support.archive.regrouping import Workshop
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

INDEXED = ["key", "header:who", {"column": "header:kind", "kind": "bitmap"}]


def produce(stack: Stack, topic: str, numbers: range) -> None:
    stack.produce(
        topic,
        *(
            {
                "key": NAME if n % 5 == 3 else b"k%d" % n,
                "value": b"v%d" % n,
                "headers": [("kind", b"a%d" % (n % 2)), *([("who", NAME)] if n % 5 == 3 else [])],
            }
            for n in numbers
        ),
    )


def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    journal = load_config(stack.config({topic: {}})).archive.journal
    config = stack.config({topic: {"index": INDEXED}}, index={"location": f"{journal}-index"})
    for start in (0, 10, 20):
        produce(stack, topic, range(start, start + 10))
        archive_once(config)
    return config, topic


def command(config: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["index", *words, "--config", str(config), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]


def found(config: Path, topic: str, **options: Any) -> tuple[list[int], int]:
    result = find(load_config(config), [topic], oldest_first=True, **options)
    offsets = [offset for _, batch in result for offset in batch.column("offset").to_pylist()]
    assert (result.report.index_error, result.report.registry_error) == (None, None)
    return sorted(offsets), result.report.files_out[BY_INDEX]


def runs_with_her(config: Path) -> list[str]:
    settings = load_config(config)
    objects = ObjectStore.of(settings.catalog)
    term = term_of_value(NAME)
    octets = term.to_bytes(8, "little", signed=True)
    named = []
    for listed in objects.list(str(settings.index.location)):
        data = objects.read(listed.path)
        terms = pq.read_table(io.BytesIO(data)).column("transform_value").to_pylist()
        if NAME in data or octets in data or term in terms:
            named.append(listed.path)
    return named


def registry_with_hash(config: Path) -> bool:
    term = term_of_value(NAME)
    octets = term.to_bytes(8, "little", signed=True)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        values = [
            value
            for (name,) in tables
            for row in connection.execute(f'SELECT * FROM "{name}"').fetchall()
            for value in row
        ]
    return any(octets in value if isinstance(value, bytes) else str(term) in str(value) for value in values)


def erase(config: Path, topic: str, where: str | None) -> EraseReport:
    options = EraseOptions(clock=lambda: time.time() + 9 * 86_400)
    condition = None if where is None else Where.parse(where)
    return Erase(load_config(config), topic, condition, options=options, engine=InlineEngine()).run()


def test_runs_answer_searches_and_an_erasure_reaches_them(stack: Stack) -> None:
    config, topic = archived(stack)
    hers, name = list(range(3, 30, 5)), NAME.decode()
    assert found(config, topic, key="k11") == ([11], 0)
    built = command(config, "build")
    assert (built["files"], built["runs"], built["files_left"], built["failures"]) == (3, 3, 0, [])
    assert found(config, topic, key="k11") == ([11], 2)
    assert found(config, topic, headers=["who=nobody"]) == ([], 3)
    assert found(config, topic, headers=[f"who={name}"]) == (hers, 0)
    assert found(config, topic, headers=["kind=a1"])[0] == list(range(1, 30, 2))
    assert command(config, "build")["files"] == 0

    Compact(load_config(config), [topic], Wish(min_files=2), engine=InlineEngine).run()
    assert found(config, topic, key="k11")[0] == [11]
    assert found(config, topic, key="k77") == ([], 1), "the new file is covered as the old ones were"
    assert command(config, "build")["files"] == 0
    assert found(config, topic, key="k77") == ([], 1)
    (status,) = command(config, "status")["topics"]
    shown = [(it["name"], it["kind"], it["runs"], it["files"], it["all_files"]) for it in status["columns"]]
    assert shown == [("key", "terms", 1, 1, 1), ("header:who", "terms", 1, 1, 1), ("header:kind", "bitmap", 1, 1, 1)]
    assert status["runs_to_delete"] == 0

    assert runs_with_her(config), "the search for her in objects can find her"
    assert registry_with_hash(config), "her hash is the first term of the run of header:who"
    with Workshop.of(config) as shop:
        shop.registry.claims.note_run(shop.topic, "index-other")
        waits = erase(config, topic, f"key = '{name}'")
        assert (waits.rewriters, len(waits.unfinished)) == (("index-other",), 1)
        shop.registry.claims.forget_run(shop.topic, "index-other")
        shop.registry.claims.note_run(shop.topic, "index-younger")
    assert runs_with_her(config) == []
    done = erase(config, topic, None)
    assert (done.succeeded, len(done.finished)) == (True, 1)
    assert objects_with_her(config) == runs_with_her(config) == []
    assert not registry_with_her(config)
    assert not registry_with_hash(config)
    assert found(config, topic, headers=[f"who={name}"]) == ([], 1), "the trimmed runs still cover the file"
    assert command(config, "build")["files"] == 1, "a granule of header:kind may have had her"
    assert found(config, topic, headers=["kind=a3"]) == ([], 1)
    assert found(config, topic, key="k77") == ([], 1)
    assert found(config, topic, key="k11")[0] == [11]
    assert runs_with_her(config) == []
    assert command(config, "drop", topic)["runs"] == 3
    assert found(config, topic, key="k11") == ([11], 0)
    settings = load_config(config)
    assert ObjectStore.of(settings.catalog).list(str(settings.index.location)) == ()


def test_an_index_that_cannot_be_written_fails_only_its_chore(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    no_folder = tmp_path / "no-folder"
    no_folder.write_bytes(b"")
    config = stack.config({topic: {"index": ["key"]}}, index={"location": f"{no_folder.as_uri()}/index"})
    produce(stack, topic, range(10))
    archive_once(config)
    with Workshop.of(config) as shop:
        chores = ChoreRunner((indexing(load_config(config)),))
        chores.run("when idle", [ChoreTopic(topic=shop.topic)], shop.registry, is_over=lambda: False)
        state = shop.registry.chores.state(shop.topic, "indexing")
    assert state.failures == 1
    assert "no-folder" in str(state.error)
    assert find(load_config(config), [topic], key="k1").count() == 1
