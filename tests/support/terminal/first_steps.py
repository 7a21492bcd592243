"""Plays a user's first ten minutes in a terminal and writes docs/first-steps.md."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.terminal.pseudo_terminal import ROOT, Seen, run

PAGE = ROOT / "docs" / "first-steps.md"
COLUMNS = 110
HOME = "/home/you/lake"
_TIMEOUT = 420.0

SHOP_PROTO = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";

message Order {
  int64 id = 1;
  string customer = 2;
  double total = 3;
  google.protobuf.Timestamp placed_at = 4;
}
"""
PRODUCE = """\
import sys
from archiver.local import LocalStack
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from shop_pb2 import Order

servers = {"bootstrap.servers": LocalStack("stack").endpoints.bootstrap_servers}
first, end = map(int, sys.argv[1:])
admin = AdminClient(servers)
if "orders" not in admin.list_topics().topics:
    admin.create_topics([NewTopic("orders", num_partitions=2)])["orders"].result()
producer = Producer(servers)
for number in range(first, end):
    order = Order(id=number, customer=f"customer {number % 5}", total=number / 4)
    order.placed_at.FromNanoseconds(1_767_225_600_123_456_000 + number)
    if "coupon" in Order.DESCRIPTOR.fields_by_name:
        order.coupon = "SPRING"
    producer.produce("orders", partition=number % 2, key=order.customer, value=order.SerializeToString())
assert producer.flush(60) == 0
print(f"{end - first:,} orders produced")
"""
QUERY = """\
import sys
import duckdb
from archiver.local import LocalStack
from pyiceberg.catalog import load_catalog

catalog = load_catalog("lake", **LocalStack("stack").endpoints.catalog_properties)
orders = catalog.load_table("kafka.orders").scan().to_arrow()
print(duckdb.sql(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    words: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    command: str


STEPS = (
    Step(
        words="## Servers\n\nThe [embedded stack](embedded-stack.md) runs Kafka, Postgres, an object store and an "
        "Iceberg catalog on this machine. Skip this step if you have these servers.",
        command="archiver local up --dir stack",
    ),
    Step(
        words="## A topic\n\nThe topic has orders in Protobuf. Write the schema and a producer:",
        files={"shop.proto": SHOP_PROTO, "produce.py": PRODUCE},
        command="python -m grpc_tools.protoc -I . --python_out . shop.proto",
    ),
    Step(command="python produce.py 0 1000"),
    Step(
        words="## A configuration\n\n`archiver init` lists the topics of the cluster and writes a configuration.\n"
        "Here the servers come from the embedded stack's configuration. For your servers, name the brokers with "
        "`--bootstrap`.",
        command="archiver init --from stack/archiver.toml",
    ),
    Step(
        words="It can't know the message type of a topic. Name the type in the configuration:",
        command='sed -i \'/^\\[topics.orders\\]/a value = { format = "protobuf", message = "shop.Order", '
        'proto = "shop.proto" }\' archiver.toml',
    ),
    Step(
        words="Check the configuration. `archiver check` tests each server and every right that the archiver needs:",
        command="archiver check",
    ),
    Step(words="## Archive", command="archiver archive --once"),
    Step(command="archiver status"),
    Step(
        words="## Query\n\nThe table is an ordinary Iceberg table. Here pyiceberg reads it, and DuckDB queries the "
        "result. Spark, DuckDB and other engines can also read it\ndirectly: see [engines](engines.md).",
        files={"query.py": QUERY},
        command="python query.py 'SELECT val.customer, count(*) AS orders, sum(val.total) AS total "
        "FROM orders GROUP BY ALL ORDER BY ALL'",
    ),
    Step(
        words="A `google.protobuf.Timestamp` is one column in microseconds. The nanoseconds that remain have a second "
        "column, so a replay is exact ([well-known types](type-mapping.md#well-known-types)):",
        command="python query.py 'SELECT val.id, epoch_us(val.placed_at) AS microseconds, val.placed_at_nanos FROM "
        "orders ORDER BY ALL LIMIT 3'",
    ),
    Step(
        words="## Replay\n\nReplay reads Kafka records from the same files, byte for byte:",
        command="archiver replay orders --limit 3",
    ),
    Step(words="With `--decode`, messages are shown as JSON:", command="archiver replay orders --limit 3 --decode"),
    Step(
        words="## A schema change\n\nAdd a field to the message, and see how the table would change:",
        command="sed -i 's/^}/  string coupon = 5;\\n}/' shop.proto",
    ),
    Step(command="archiver schema diff orders"),
    Step(
        words="The change adds a column. Produce records with the new field and archive them:",
        command="python -m grpc_tools.protoc -I . --python_out . shop.proto",
    ),
    Step(command="python produce.py 1000 1200"),
    Step(command="archiver archive --once"),
    Step(
        command="python query.py 'SELECT kafka.schema_version AS version, val.coupon, count(*) AS orders "
        "FROM orders GROUP BY ALL ORDER BY ALL'"
    ),
    Step(command="archiver schema history orders"),
    Step(
        words="A change that adds a column is applied by itself, with the first record that has it. Renaming or "
        "removing a field, or changing its type, breaks queries, so it waits: records are archived with "
        "version 2 until `archiver schema approve orders`, and values that fit only the new schema are kept "
        "raw. `archiver schema diff orders` shows the change before and after you save the file, `archiver "
        "status` reports that it waits, and `archiver reprocess orders` gives the kept values their columns "
        "after the approval. [Schema evolution](schema-evolution.md#changes-that-wait-for-approval) describes "
        "each step.\n\n"
        "## The end\n\nStop the servers. Their data stays, and the next `up` continues with it.",
        command="archiver local down --dir stack",
    ),
)


def play(folder: Path) -> Iterator[tuple[Step, Seen]]:
    commands = folder / ".bin"
    commands.mkdir(parents=True)
    for name, module in (("python", ""), ("archiver", " -m archiver")):
        program = commands / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{module} "$@"\n')
        program.chmod(0o755)
    environment = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    try:
        for step in STEPS:
            for name, text in step.files.items():
                (folder / name).write_text(text)
            line = f"cd {shlex.quote(str(folder))} && {step.command}"
            yield step, run(["bash", "-c", line], columns=COLUMNS, environment=environment, timeout=_TIMEOUT)
    finally:
        down = ["bash", "-c", f"cd {shlex.quote(str(folder))} && archiver local down --dir stack"]
        run(down, columns=COLUMNS, environment=environment, timeout=_TIMEOUT)


def shown(step: Step, seen: Seen, folder: Path) -> str:
    text = "\n".join(line.rstrip() for line in seen.text.strip("\n").splitlines()).replace(str(folder), HOME)
    text = re.sub(r"\S+/bin/java\b", "/usr/bin/java", text)
    parts = [step.words] if step.words else []
    for name, content in step.files.items():
        parts.append(f"`{name}`:\n\n```{'python' if name.endswith('.py') else 'proto'}\n{content}```")
    lines = [f"$ {step.command}", *([text] if text else [])]
    parts.append("\n".join(["```console", *lines, "```"]))
    return "\n\n".join(parts)


def same(text: str) -> list[str]:
    text = re.sub(r"(?m)(^✓.*$\n?)+", lambda match: "\n".join(sorted(match[0].split("\n"))), text)
    text = re.sub(r"cluster [\w-]{22}", "cluster ID", text)
    text = re.sub(r"[-─━═]{2,}", " ", text)
    text = re.sub(r"\d[\d,.:]*", "N", text)
    text = re.sub(r"\bN(N|-N|Z|T)*( (ms|s|min|h|[kMG]?i?B)\b)?", "N", text)
    text = re.sub(r"\bN(\s+N\b)+", "N", text)
    text = re.sub(r"(\S+: committed N records\s+)+", r"\1", text)  # in one commit, or in several
    return text.split()


def page(parts: list[str]) -> str:
    return "\n\n".join([INTRODUCTION, *parts, NEXT]) + "\n"


INTRODUCTION = f"""\
# First steps

This page archives a topic, queries the table, replays the records and changes the schema. First install the archiver
and DuckDB: `pip install "kafka_iceberg_archiver-….whl[local]" duckdb` ([how to install](../README.md#install)). Then
run the commands in an empty folder. The output is from a terminal {COLUMNS} columns wide. A test runs the same
commands and compares their output with this page. `scripts/first-steps` generates the page."""
NEXT = """\
Read on: [concepts](concepts.md) explains the guarantees, [configuration](configuration.md) lists every key, and
[operations](operations.md) explains how to run the archiver in production. The archiver removes no records unless you
configure it. A retention needs a unit: `retention = "90d"`.
[`archiver expire` and `archiver erase`](removing-records.md#retention) show what they will remove before they do it."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="first-steps-") as name:
        folder = Path(name) / "lake"
        parts = []
        for step, seen in play(folder):
            sys.stdout.write(f"$ {step.command}\n{seen.text}\n")
            sys.stdout.flush()
            if seen.exit_code:
                sys.exit(f"This step ended with exit code {seen.exit_code}")
            parts.append(shown(step, seen, folder))
    PAGE.write_text(page(parts))


if __name__ == "__main__":
    main()
