"""Writes `archive-VERSION`: an archive of this version of the archiver.

    unshare --uts sh -c 'hostname archive && python -m tests.vectors.make_archive 0.1'

It takes two minutes. Audit entries name their host, so it has a neutral name. Existing folders stay: name the version
that is released next. docs/testing.md describes the content.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.fs
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from archiver.audit.signing import SigningKey
from archiver.cli.app import app
from archiver.config import load_config
from archiver.demo.settings import sql_options
from archiver.engine.spark import SparkEngine
from archiver.local.fetch import fetch_iceberg
from archiver.local.postgres_binaries import binaries
from archiver.upkeep.journal_upkeep import SumJournals
from archiver.upkeep.verify.job import Verify
from tests.support.archive.kept_archive import Fate, KeptArchive
from tests.support.archive.readers import from_archive
from tests.support.servers.embedded import embedded
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack
from tests.vectors import archive_histories as histories

JOURNAL = "s3://lake/archive/journal"
SERVED = {"cluster_id": "archive"}
GROUP = "billing"
COMMITTED = {0: 17, 1: 40}
USER, PASSWORD = "reader", "a password for tests"
SUMMED = ("customers", "events")


def make(version: str, scratch: Path) -> None:
    kept = KeptArchive.of_version(version)
    if kept.folder.exists():
        raise FileExistsError(f"{kept.folder} is kept as it is: give another version")
    (scratch / "stack").mkdir()
    SigningKey.generate(scratch / "audit.pem", scratch / "audit.pub")
    with embedded(scratch / "stack") as local:
        stack = Stack(local.up(), scratch)
        making = _making(stack)
        _play(making)
        _serve(making)
        settings = load_config(making.config)
        _judge(making)
        registry = _dump(settings.registry.dsn)
        about = {
            "version": version,
            "commit": _output("git", "rev-parse", "--short=8", "HEAD").decode().strip(),
            "topics": making.sections,
            "partitions": histories.PARTITIONS,
            "journal": JOURNAL,
            "serve": SERVED,
            "tables": _tables(stack),
            "group": {"name": GROUP, "topic": "orders", "offsets": COMMITTED},
            "user": {"name": USER, "password": PASSWORD},
        }
        objects = _objects(stack)
        local.down(only=["kafka"])
        broker = scratch / "stack" / "kafka" / "data"
        kept.write(about, making.kept(), registry=registry, objects=objects, broker=broker)
        for name in histories.PROTOS:
            (kept.folder / name).write_text(making.config.with_name(name).read_text())
        kept.public_key.write_bytes((scratch / "audit.pub").read_bytes())


def _making(stack: Stack) -> histories.Making:
    sections = {name: {"table": f"kafka.{name}", **keys} for name, keys in histories.SECTIONS.items()}
    audit = {"principal": "maintainer", "signing_key": str(stack.scratch / "audit.pem")}
    config = stack.config(sections, archive={"journal": JOURNAL}, audit=audit, serve=SERVED)
    for name, text in histories.PROTOS.items():
        config.with_name(name).write_text(text)
    return histories.Making(stack=stack, config=config, sections=sections)


def _play(making: histories.Making) -> None:
    histories.orders(making)
    histories.customers(making)
    histories.events(making)
    histories.shipments(making)
    endpoints = making.stack.endpoints
    options = {"master": "local[2]", **sql_options(endpoints, fetch_iceberg(lambda _: None))}
    with SparkEngine.start(options) as spark:
        histories.payments(making, spark)
    histories.interrupt(making)
    summed: list[Any] = []
    assert SumJournals(config=load_config(making.config), topics=SUMMED, older_than=0.0).run(summed.append)
    _command(making, "audit", "checkpoint")


def _serve(making: histories.Making) -> None:
    password = making.config.with_name("password")
    password.write_text(PASSWORD)
    _command(making, "users", "add", USER, "--password-file", str(password), "--iterations", "4096")
    with serving(making.config) as address:
        consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP, "enable.auto.commit": False})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        places = [TopicPartition("orders", partition, offset) for partition, offset in COMMITTED.items()]
        assert not any(item.error for item in consumer.commit(offsets=places, asynchronous=False))
        consumer.close()


def _judge(making: histories.Making) -> None:
    """Records and `verify` must be right in the version that writes them."""
    for topic in histories.TOPICS:
        expected = [record.seen for record in making.kept() if (record.topic, record.fate) == (topic, Fate.ARCHIVED)]
        assert from_archive(making.config, topic, histories.PARTITIONS) == expected, topic
    report = Verify(load_config(making.config), histories.TOPICS).run()
    for verdict in report.topics:
        print(verdict.topic, *(fault.message for fault in verdict.faults), sep="\n  ")  # noqa: T201 - a script
    assert not report.failed, report.failed


def _command(making: histories.Making, *words: str) -> None:
    done = CliRunner().invoke(app, [*words, "--config", str(making.config)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def _dump(dsn: str) -> bytes:
    options = ("--no-owner", "--no-privileges", "--restrict-key=archive", f"--dbname={dsn}")
    return _output(str(binaries() / "pg_dump"), *options)


def _output(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=True).stdout


def _tables(stack: Stack) -> dict[str, dict[str, str]]:
    catalog = stack.catalog()
    tables = (catalog.load_table(f"kafka.{topic}") for topic in histories.TOPICS)
    return {
        ".".join(table.name()): {"metadata": table.metadata_location, "uuid": str(table.metadata.table_uuid)}
        for table in tables
    }


def _objects(stack: Stack) -> dict[str, bytes]:
    store = pyarrow.fs.S3FileSystem(
        endpoint_override=stack.s3_endpoint,
        access_key=stack.access_key,
        secret_key=stack.secret_key,
        region="us-east-1",
    )
    folders = ("tables/kafka", JOURNAL.removeprefix("s3://"))
    paths = [
        info.path
        for folder in folders
        for info in store.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True))
        if info.type == pyarrow.fs.FileType.File
    ]
    return {path: store.open_input_stream(path).read() for path in paths}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        make(sys.argv[1], Path(temporary))
