"""Refused or shared table names on real servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.ingest.report import JobReport
from catalog.errors import CatalogRefused, RegistryBehind, TableTaken
from schema_mapping.errors import ContextError
from tests.support.archive.job_runs import read, run
from tests.support.catalog.lossy_catalog import glue_proxy, nessie_proxy, s3_tables_proxy
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


def errors(report: JobReport) -> dict[str, ContextError | None]:
    return {topic.topic: topic.error for topic in report.topics}


def with_catalog(config: Path, uri: str) -> Path:
    config.write_text(config.read_text().replace(load_config(config).catalog["uri"], uri))
    return config


def failed_checks(config: Path) -> dict[str, str]:
    done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
    checks = json.loads(done.stdout)["checks"]
    return {
        check["subject"]: check["error"]["kind"]
        for check in checks
        if check["outcome"] == "failed" and check["part"] == "Table names"
    }


@pytest.mark.parametrize("name", ["_{}", "{}_"])
def test_a_refused_name_is_replaced_by_another(stack: Stack, name: str) -> None:
    topic = stack.topic(name=f"_audit-{unique('t')}")
    stack.produce(topic, {"value": b"x"})
    table = f"kafka.{unique('t')}"
    config = stack.config({topic: {"table": f"kafka.{name.format(unique('audit'))}"}})
    with s3_tables_proxy(load_config(config).catalog["uri"]) as proxy:
        with_catalog(config, proxy.uri)
        assert failed_checks(config) == {f"topic {topic}": "CatalogRefused"}
        refused = run(config)
        error = errors(refused)[topic]
        assert isinstance(error, CatalogRefused)
        assert error.message.startswith("the topic's table can't be made: the catalog refused the request: ")
        assert "table name" in error.message
        assert "set another `table` for the topic" in error.message
        assert error.context["key"] == f"topics.{topic}.table"
        old = load_config(config).topic(topic).table
        config.write_text(config.read_text().replace(json.dumps(old), json.dumps(table)))
        assert failed_checks(config) == {}
        report = run(config)
    assert (report.records, errors(report)) == (1, {topic: None})
    assert read(stack, config, topic).num_rows == 1
    config.write_text(config.read_text().replace(json.dumps(table), json.dumps(f"{table}_2")))
    assert isinstance(errors(run(config))[topic], TableTaken), "the name is taken since the table was made"


def test_refused_names_of_a_pattern(stack: Stack) -> None:
    """A section cures one topic, another template cures them all."""
    prefix = unique("_raw")
    topics = [f"{prefix}-{place}" for place in ("de", "fr", "it")]
    for topic in topics:
        stack.produce(stack.topic(name=topic), {"value": b"x"})
    config = stack.config({f"{prefix}-*": {"table": "{namespace}.{topic}"}})
    with s3_tables_proxy(load_config(config).catalog["uri"]) as proxy:
        with_catalog(config, proxy.uri)
        refused = errors(run(config))
        assert {topic: type(error) for topic, error in refused.items()} == dict.fromkeys(topics, CatalogRefused)
        assert failed_checks(config) == {f"topic {topic}": "CatalogRefused" for topic in topics}
        text = config.read_text()
        config.write_text(f'{text}[topics."{topics[0]}"]\ntable = "kafka.{unique("t")}"\n')
        assert {topic for topic, error in errors(run(config)).items() if error is None} == {topics[0]}
        config.write_text(config.read_text().replace("{namespace}.{topic}", "{namespace}.from{topic}"))
        assert failed_checks(config) == {}
        report = run(config)
    assert (report.records, set(errors(report).values())) == (2, {None})
    assert [read(stack, config, topic).num_rows for topic in topics] == [1, 1, 1]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_the_name_of_a_table_that_somebody_took_away(stack: Stack, is_renamed: bool) -> None:
    """It stays its topic's name: dropped and renamed tables may come back under it."""
    topic, other = stack.topic(), stack.topic()
    for source in (topic, other):
        stack.produce(source, {"value": b"x"})
    config = stack.config({topic: {}})
    name, elsewhere = load_config(config).topic(topic).table, f"kafka.{unique('t')}"
    assert run(config).records == 1
    catalog = stack.catalog()
    if is_renamed:
        catalog.rename_table(name, elsewhere)
    else:
        catalog.drop_table(name)
    text = config.read_text()
    assert isinstance(errors(run(config))[topic], RegistryBehind)
    config.write_text(text.replace(json.dumps(topic), json.dumps(other)))
    taken = errors(run(config))[other]
    assert isinstance(taken, TableTaken)
    assert (taken.context["taken_by"], taken.context["table"]) == (topic, name)
    config.write_text(text.replace(json.dumps(name), json.dumps(elsewhere)))
    moved = errors(run(config))[topic]
    assert isinstance(moved, TableTaken)
    assert moved.context["archived_in"] == name
    if is_renamed:
        catalog.rename_table(elsewhere, name)
        stack.produce(topic, {"value": b"y"})
        config.write_text(text)
        assert run(config).records == 1
        assert read(stack, config, topic).num_rows == 2


def test_topics_whose_table_exists_go_on(stack: Stack) -> None:
    prefix = unique("a")
    topics = [f"{prefix}.b", f"{prefix}.orders"]
    late = [f"{prefix}-b", f"{prefix}.Orders", f"{prefix}.new", f"{prefix}.New"]
    config = stack.config({f"{prefix}[.-]*": {"table": "{namespace}.{topic}"}})
    for topic in topics:
        stack.produce(stack.topic(name=topic), {"value": b"1"})
    assert run(config).records == 2
    for topic in late:
        stack.topic(name=topic)
    for topic in (*topics, *late):
        stack.produce(topic, {"value": b"2"})
    assert failed_checks(config) == {
        f"topic {prefix}-b": "NotOurTable",
        f"topic {prefix}.Orders": "NotOurTable",
        f"topic {prefix}.new": "TableTaken",
        f"topic {prefix}.New": "TableTaken",
    }
    report = run(config)
    refused = {topic: error for topic, error in errors(report).items() if error is not None}
    assert (report.records, report.succeeded) == (2, False)
    assert refused.keys() == set(late)
    assert {topic: error.context.get("taken_by") for topic, error in refused.items()} == {
        f"{prefix}-b": f"{prefix}.b",
        f"{prefix}.Orders": f"{prefix}.orders",
        f"{prefix}.new": None,
        f"{prefix}.New": None,
    }
    for topic in topics:
        assert read(stack, config, topic).num_rows == 2
    own = "".join(f'[topics.{json.dumps(topic)}]\ntable = "kafka.{{topic}}_{{hash}}"\n' for topic in late)
    config.write_text(config.read_text() + own)
    assert run(config).records == 4


@pytest.mark.parametrize("status", [400, 406, 501])
def test_a_catalog_without_staged_creation(stack: Stack, status: int) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = stack.config({topic: {}})
    with glue_proxy(load_config(config).catalog["uri"], status) as proxy:
        with_catalog(config, proxy.uri)
        checked = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
        assert "without staged creation: made empty, then changed by one commit" in checked.stdout
        assert failed_checks(config) == {}
        made = proxy.plain
        assert run(config).succeeded
        assert proxy.plain == made + 1
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    assert table.scan().to_arrow().num_rows == 1
    assert len(table.spec().fields) == 1
    assert table.properties["archiver.topic"] == topic


def test_a_catalog_that_wants_last_column_ids(stack: Stack) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = stack.config({topic: {}})
    with nessie_proxy(load_config(config).catalog["uri"]) as proxy:
        assert run(with_catalog(config, proxy.uri)).succeeded
    assert read(stack, config, topic).num_rows == 1


def test_an_empty_table_is_taken_over(stack: Stack) -> None:
    topic, second = stack.topic(), stack.topic()
    for source in (topic, second):
        stack.produce(source, {"value": b"x"})
    config = stack.config({topic: {}, second: {}})
    name, model = (load_config(config).topic(source).table for source in (topic, second))
    ddl = CliRunner().invoke(app, ["schema", "show", topic, "--ddl", "--no-json", "--config", str(config)])
    assert (ddl.exit_code, ddl.stdout.replace("`", "").startswith(f"CREATE TABLE {name} (")) == (0, True), ddl.stdout
    assert run(config, second).succeeded
    catalog = stack.catalog()
    mine = catalog.create_table(name, catalog.load_table(model).schema()).metadata.table_uuid
    status = json.loads(CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)]).stdout)
    assert status["topics"][0]["problem"] is None
    assert run(config, topic).succeeded
    made = catalog.load_table(name)
    assert (made.metadata.table_uuid, made.scan().to_arrow().num_rows) == (mine, 1)

    catalog.drop_table(name)
    catalog.create_table(name, made.schema())
    failed = errors(run(config, topic))[topic]
    assert isinstance(failed, RegistryBehind), "another table under the name is never taken over"
    assert failed.context["known_uuid"] == str(mine)
    assert problem_of(config, topic) == "RegistryBehind"


def problem_of(config: Path, topic: str) -> str | None:
    done = CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)])
    problem = json.loads(done.stdout)["topics"][0]["problem"]
    return None if problem is None else str(problem["kind"])
