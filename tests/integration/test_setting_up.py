"""`archiver check`, `init` and `topics`."""

from __future__ import annotations

import json
import re
import socket
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from archiver.storage.objects import ObjectStore
from tests.support.archive.job_runs import archive_once
from tests.support.catalog.choice import of_the_stacks_own_catalog
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def checked(config: Path, *options: str) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    done = run("check", "--no-spark", "--config", config, *options)
    document = json.loads(done.stdout)
    checks = {(check["part"], check["subject"].partition(",")[0]): check for check in document["checks"]}
    assert document["ok"] is (done.exit_code == 0)
    return done.exit_code, checks


def failed(found: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {key: check["error"]["kind"] for key, check in found.items() if check["outcome"] == "failed"}


OF_A_TEST = re.compile(r"_\d+_\d+_[0-9a-f]{6}(_|$)")


def left(stack: Stack, config: Path) -> tuple[Any, ...]:
    loaded = load_config(config)
    catalog = stack.catalog()
    namespaces = sorted(catalog.list_namespaces())
    tables = sorted(table for namespace in namespaces for table in catalog.list_tables(namespace))
    kept = [[name for name in names if not OF_A_TEST.search(name[-1])] for names in (namespaces, tables)]
    objects = {file.path for file in ObjectStore.of(loaded.catalog).list(f"{loaded.archive.journal}")}
    with psycopg.connect(loaded.registry.dsn) as connection:
        relations = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    return kept, objects, relations, loaded.archive.spool.exists()


def test_all_is_well_and_nothing_is_left_behind(stack: Stack) -> None:
    topic, empty = stack.topic(3), stack.topic()
    stack.produce(topic, {"value": b"x"})
    namespace = unique("fresh")
    journal = f"s3://{stack.bucket}/{unique('journal')}"
    config = stack.config({topic: {}, empty: {"table": f"{namespace}.t"}}, archive={"journal": journal})
    before = left(stack, config)
    code, checks = checked(config)
    assert (code, failed(checks)) == (0, {})
    assert left(stack, config) == before
    assert (namespace,) not in stack.catalog().list_namespaces()
    assert checks["Kafka", f"topic {topic}"]["detail"] == "described and read: 3 partitions, 1 offset"
    assert "0 offsets" in checks["Kafka", f"topic {empty}"]["detail"]
    assert "migrations at the next start" in checks["Postgres", ""]["detail"]
    assert {("Catalog", f"namespace {namespace}"), ("Store", "journal"), ("Java", ""), ("Spool", "")} <= checks.keys()
    assert checks["Spark", ""]["outcome"] == checks["Schema registry", ""]["outcome"] == "skipped"
    assert all(check["seconds"] >= 0.0 for check in checks.values())


@of_the_stacks_own_catalog("the Java catalog asks nobody who they are")
def test_every_check_runs_though_others_fail(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    topic = stack.topic()
    broken = {"format": "protobuf", "message": "M", "proto": "gone.proto"}
    config = stack.config(
        {topic: {}, "nowhere": {}, "none.*": {"value": broken}},
        registry={"dsn": stack.postgres_dsn + "_missing"},
        catalog={"credential": "nobody:wrong"},
        archive={"spool": str(tmp_path / "spool"), "journal.s3.secret-access-key": "wrong"},
        schema_registry={"url": "http://127.0.0.1:1", "timeout": "100ms"},
    )
    config.write_text(config.read_text().replace('[topics."none.*"]\n"table" = ', '[topics."none.*"]\n# '))
    code, checks = checked(config, "--timeout", "60s")
    assert code == 1
    wrong = failed(checks)
    for part in ("Catalog", "Table names"):
        assert wrong.pop((part, "namespace kafka")) in {"CatalogDenied", "CatalogRefused"}
    assert wrong == {
        ("Configuration", "topic none.*"): "ConfigError",
        ("Spool", ""): "ConfigError",
        ("Kafka", "topic nowhere"): "UnknownTopic",
        ("Postgres", ""): "RegistryDenied",
        ("Store", "journal"): "StorageDenied",
        ("Schema registry", ""): "SchemaRegistryUnavailable",
    }
    assert checks["Kafka", f"topic {topic}"]["outcome"] == "ok"
    assert checks["Kafka", "pattern none.*"]["outcome"] == "warning"


def test_a_server_that_never_answers_is_given_up(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/archiver"
        code, checks = checked(stack.config({}, registry={"dsn": dsn}), "--timeout", "3s")
    assert code == 1
    assert failed(checks)["Postgres", ""] in {"CheckFailed", "RegistryUnreachable"}
    assert checks["Postgres", ""]["seconds"] < 20.0
    assert checks["Store", "journal"]["outcome"] == "ok"


def test_text_names_what_is_wrong_in_80_columns(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run("check", "--no-spark", "--no-json", "--config", stack.config({"nowhere": {}}))
    assert done.exit_code == 1
    assert "FAILED" in done.stdout
    assert "Kafka topic nowhere: UnknownTopic" in done.stdout
    assert "failed: Kafka." in done.stdout.replace("\n", " ")
    assert max(map(len, done.stdout.splitlines())) <= 80


@contextmanager
def limited_user(stack: Stack, dsn: str) -> Iterator[str]:
    name = unique("reader")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE USER {name} PASSWORD 'limited'")  # type: ignore[arg-type]
        yield re.sub("//[^@]*@", f"//{name}:limited@", dsn)
        connection.execute(f"DROP USER {name}")  # type: ignore[arg-type]


def test_a_user_who_may_not_migrate_is_told(stack: Stack) -> None:
    config = stack.config({})
    dsn = load_config(config).registry.dsn
    with limited_user(stack, dsn) as limited:
        config.write_text(config.read_text().replace(json.dumps(dsn), json.dumps(limited)))
        _, checks = checked(config)
    assert failed(checks) == {("Postgres", ""): "RegistryDenied"}


def test_a_first_configuration_loads_checks_and_archives(stack: Stack, tmp_path: Path) -> None:
    prefix = unique("init")
    names = {kind: stack.topic(2, name=f"{prefix}.{kind}") for kind in ("json", "text", "proto", "framed", "empty")}
    stack.topic(name=f"_{prefix}")
    stack.topic(name=f"{prefix}.Text")  # its default table is that of another
    stack.produce(names["json"], *({"value": b'{"n": %d}' % number, "key": b"k"} for number in range(40)))
    stack.produce(names["text"], {"value": b"hello"}, {"value": None})
    stack.produce(names["proto"], *({"value": b"\x08\x96\x01\x12\x03abc"} for _ in range(5)))
    stack.produce(names["framed"], *({"value": b"\x00\x00\x00\x00\x07\x00\x08\x01"} for _ in range(5)))
    config = tmp_path / "first.toml"
    base = stack.config({"ignored": {}})
    made = run("init", "--from", base, "--config", config, "--topic", f"*{prefix}*")
    assert made.exit_code == 0, made.stderr
    report = json.loads(made.stdout)
    assert report["topics"] == sorted([*names.values(), f"{prefix}.Text"])
    assert report["commented_out"] == [f"_{prefix}"]
    assert config.stat().st_mode & 0o777 == 0o600
    text = config.read_text()
    assert "Of 20 values, 20 look like JSON." in text
    assert "Of 2 values, " in text
    assert "Field numbers: 1, 2" in text
    assert "Schema ids: 7" in text
    assert f"# [topics._{prefix}]" in text
    assert set(tomllib.loads(text)["topics"]) == set(report["topics"])
    loaded = load_config(config)
    assert len({loaded.topic(name).table for name in report["topics"]}) == len(names) + 1
    again = run("init", "--from", base, "--config", config)
    assert (again.exit_code, config.read_text()) == (2, text)
    _, checks = checked(config)
    assert failed(checks) == {}
    archive_once(config, names["json"])
    listed = json.loads(run("topics", f"{prefix}*", "--config", config).stdout)["topics"]
    rows = {row["topic"]: row for row in listed}
    assert rows[names["json"]]["archived_to"] == loaded.topic(names["json"]).table
    assert (rows[names["json"]]["partitions"], rows[names["json"]]["offsets"]) == (2, 40)
    assert rows[names["text"]]["archived_to"] is None
    assert rows[names["text"]]["section"] == names["text"]
    assert run("init", "--from", base, "--config", config, "--force", "--samples", "0").exit_code == 0


def test_topics_missing_from_the_cluster_are_reported(stack: Stack) -> None:
    topic, second = stack.topic(), stack.topic()
    config = stack.config({topic: {}, "nowhere": {}})
    stack.produce(topic, {"value": b"x"})
    archive_once(config, topic)
    stack.delete_topic(topic)
    listed = json.loads(run("topics", "--config", config).stdout)["topics"]
    rows = {row["topic"]: row for row in listed}
    assert (rows[topic]["in_cluster"], rows[topic]["archived_to"] is not None) == (False, True)
    assert (rows["nowhere"]["in_cluster"], rows["nowhere"]["section"]) == (False, "nowhere")
    assert (rows[second]["in_cluster"], rows[second]["section"]) == (True, None)
    shown = run("topics", "--no-json", "--config", config).stdout
    assert "without a section" in " ".join(shown.split())


def test_topics_without_postgres(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, registry={"dsn": stack.postgres_dsn + "_missing"})
    done = run("topics", "--config", config)
    assert done.exit_code == 1
    assert topic in {row["topic"] for row in json.loads(done.stdout)["topics"]}
    assert json.loads(done.stderr)["error"]["kind"] == "RegistryDenied"
