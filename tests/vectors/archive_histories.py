"""Histories of a kept archive's topics, played by `make_archive.py`."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.fault_points import VARIABLE
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.records.where import Where
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import CompactReport
from archiver.upkeep.erase.job import Erase
from archiver.upkeep.holds import HoldKeeper
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.repartition import repartition
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from tests.support.archive.job_runs import archive_once
from tests.support.archive.kept_archive import Fate, KeptRecord
from tests.support.archive.readers import Seen, from_kafka, wait_until_decided
from tests.support.catalog.foreign_writes import delete_rows, tag
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive as archive_in_a_process
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack, to_toml

START = 1_767_225_600_000
DAY = 86_400_000
PARTITIONS = 2
TOPICS = ("orders", "customers", "events", "shipments", "payments")
NAMES = (b"anna", b"bob", b"carl", b"dora", b"emil")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

ORDERS = (
    """
syntax = "proto3"; package shop;
message Line { string sku = 1; int32 count = 2; }
message Order {
  int32 id = 1; string customer = 2; string note = 3; repeated Line lines = 4; map<string, int32> tags = 5;
}
""",
    """
syntax = "proto3"; package shop;
message Line { string sku = 1; int64 count = 2; double price = 3; }
message Order {
  int64 id = 1; string client = 2; bytes note = 3; repeated Line lines = 4; map<string, int32> tags = 5;
  oneof payment { string card = 6; bool cash = 7; }
}
""",
    """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
enum State { OPEN = 0; PAID = 1; SENT = 2; }
message Line { string sku = 1; int64 count = 2; double price = 3; repeated float weights = 4; }
message Order {
  int64 id = 1; string client = 2; bytes note = 3; repeated Line lines = 4;
  oneof payment { string card = 6; bool cash = 7; }
  State state = 8; google.protobuf.Timestamp at = 9; uint64 check = 10; Order parent = 11;
}
""",
)
SHIPMENTS = """
syntax = "proto3"; package shop;
message Address { optional string region = 1; int32 zip = 2; }
message Shipment { int64 id = 1; Address to = 2; uint64 weight = 3; repeated string parts = 4; }
"""
PAYMENTS = """
syntax = "proto3"; package shop;
message Payment { int64 id = 1; string payer = 2; double amount = 3; repeated int32 parts = 4; }
"""
PROTOS = {"orders.proto": ORDERS[0], "shipments.proto": SHIPMENTS, "payments.proto": PAYMENTS}
REPARTITIONED = ["day", "bucket(3, key.__raw__)"]
SECTIONS: dict[str, dict[str, Any]] = {
    "orders": {"value": {"format": "protobuf", "message": "shop.Order", "proto": "orders.proto"}},
    "customers": {},
    "events": {"partition_source": "nested"},
    "shipments": {
        "value": {"format": "protobuf", "message": "shop.Shipment", "proto": "shipments.proto"},
        "partition_by": ["day", "val.to.region", "bucket(2, key.__raw__)"],
        "bloom_filters": ["key.__raw__"],
        "uint64": "decimal",
    },
    "payments": {"value": {"format": "protobuf", "message": "shop.Payment", "proto": "payments.proto"}},
}
"""The topics' sections as they are at first."""


@dataclass(slots=True, kw_only=True)
class Making:
    """An archive in the making: its servers, and all records read from the broker.

    `sections` are the topics' current ones, in the file `config`.
    """

    stack: Stack
    config: Path
    sections: dict[str, dict[str, Any]]
    records: dict[tuple[str, int, int], Seen] = field(default_factory=dict)
    fates: dict[tuple[str, int, int], Fate] = field(default_factory=dict)

    def produce(self, topic: str, messages: Iterable[dict[str, Any]], *, codec: str = "zstd") -> None:
        self.stack.produce(topic, *messages, compression_type=codec, batch_num_messages=7)

    def archive(self, topic: str) -> None:
        archive_once(self.config, topic)

    def note(self, topic: str, fate: Fate, which: Callable[[Seen], bool] = lambda _: True) -> None:
        wait_until_decided(self.stack, topic, PARTITIONS)
        for record in from_kafka(self.stack, topic, PARTITIONS):
            key = (topic, record.partition, record.offset)
            assert self.records.setdefault(key, record) == record, record
            is_open = self.fates.get(key) in (None, Fate.ARCHIVED)
            self.fates[key] = fate if is_open and which(record) else self.fates.get(key, Fate.ARCHIVED)

    def kept(self) -> list[KeptRecord]:
        return [KeptRecord(topic=key[0], seen=self.records[key], fate=self.fates[key]) for key in sorted(self.records)]

    def change_section(self, topic: str, **keys: Any) -> None:
        before = to_toml({"topics": {topic: self.sections[topic]}})
        self.sections[topic] |= keys
        text = self.config.read_text()
        assert before in text
        self.config.write_text(text.replace(before, to_toml({"topics": {topic: self.sections[topic]}})))

    def erase(self, topic: str, where: str) -> bool:
        return Erase(load_config(self.config), topic, Where.parse(where), engine=InlineEngine()).run().succeeded


def orders(making: Making) -> None:
    """Three schema versions, poison values, headers, transactions, reprocessed rows."""
    making.stack.topic(PARTITIONS, name="orders")
    proto = making.config.with_name("orders.proto")
    for version, text in enumerate(ORDERS):
        proto.write_text(text)
        for codec in CODECS:
            numbers = range(len(making.records), len(making.records) + 16)
            making.produce("orders", (_order(version, number) for number in numbers), codec=codec)
            making.note("orders", Fate.ARCHIVED)
        for end in ("commit_transaction", "abort_transaction"):
            messages = (_order(version, 1_000 + number) for number in range(6))
            producer = making.stack.begun("orders", *messages, name=f"{end}-{version}")
            getattr(producer, end)(30)
        making.archive("orders")
        if version == 1:
            assert Reprocess(load_config(making.config), "orders", engine=InlineEngine()).run().commit_id
    making.note("orders", Fate.ARCHIVED)


def customers(making: Making) -> None:
    """Finished and open erasures, a released hold and one in force."""
    making.stack.topic(PARTITIONS, name="customers")
    for turn in range(3):
        making.produce("customers", (_customer(number) for number in range(turn * 50, turn * 50 + 50)))
        making.archive("customers")
    making.note("customers", Fate.ARCHIVED)
    holds = HoldKeeper(load_config(making.config))
    first = holds.place("customers", start="0", end="10", reason="case 1")
    holds.release("customers", first.hold.id, reason="closed")
    assert making.erase("customers", "key = 'anna'")
    tag(making.stack, making.config, "customers", "audited")
    assert not making.erase("customers", "key = 'bob' and offset < 40")
    making.note("customers", Fate.ERASED, lambda record: record.key == b"anna")
    making.note("customers", Fate.ERASED, lambda record: record.key == b"bob" and record.offset < 40)
    holds.place("customers", start="40", end="60", partitions=(1,), reason="case 2")


def events(making: Making) -> None:
    """Retired twice, with accepted losses; compacted, and archived on."""
    making.stack.topic(PARTITIONS, name="events", config={"message.timestamp.type": "LogAppendTime"})

    def day(number: int) -> None:
        making.produce("events", (_event(index) for index in range(number * 20, number * 20 + 20)), codec="lz4")

    for number in range(4):
        day(number)
        making.archive("events")
    day(4)
    making.note("events", Fate.ARCHIVED)
    cut = {TopicPartition("events", 1, 45): range(40, 45)}
    for partition, offsets in cut.items():
        making.note("events", Fate.LOST, lambda record, o=offsets: record.partition == 1 and record.offset in o)
        making.stack.admin.delete_records([partition])[partition].result(30)
    job = ArchiveJob(load_config(making.config), ["events"], accepts=AcceptedLosses(gaps=True), engine=InlineEngine())
    assert job.run_once().succeeded
    for offset in (10, 20):
        limits = RetireLimits(offset=offset, partitions=frozenset({0}))
        settings = load_config(making.config)
        assert Expire(settings, ["events"], limits=limits, engine=InlineEngine()).run().succeeded
    making.note("events", Fate.RETIRED, lambda record: record.partition == 0 and record.offset < 20)
    assert _compact(making, "events", partitions=frozenset({0})).topics[0].commits
    for number in (5, 6):
        day(number)
        making.archive("events")
    making.note("events", Fate.ARCHIVED)


def shipments(making: Making) -> None:
    """Partitioned by columns, compacted, repartitioned: files of two specs."""
    making.stack.topic(PARTITIONS, name="shipments")
    for turn in range(4):
        if turn == 2:
            assert _compact(making, "shipments").topics[0].commits
            making.change_section("shipments", partition_by=REPARTITIONED)
            repartition(load_config(making.config), "shipments")
        making.produce("shipments", (_shipment(number) for number in range(turn * 60, turn * 60 + 60)))
        making.archive("shipments")
    making.note("shipments", Fate.ARCHIVED)


def payments(making: Making, spark: SparkEngine) -> None:
    """Other engines: all files rewritten, rows deleted in both ways, some restored."""
    table = load_config(making.config).topic("payments").table

    def run(statement: str) -> None:
        spark.session.sql(statement.format(table=table)).collect()

    def delete(partition: int, offsets: tuple[int, ...], *, mode: str) -> None:
        run(f"ALTER TABLE lake.{{table}} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')")
        run(f"DELETE FROM lake.{{table}} WHERE kafka.partition = {partition} AND kafka.offset IN {offsets}")

    def more(turns: range) -> None:
        for turn in turns:
            making.produce("payments", (_payment(number) for number in range(turn * 40, turn * 40 + 40)))
            making.archive("payments")
        making.note("payments", Fate.ARCHIVED)

    making.stack.topic(PARTITIONS, name="payments")
    more(range(3))
    run("CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    delete_rows(making.stack, making.config, "payments", 0, range(3, 6))
    accepted = RefillJob(load_config(making.config), "payments", accept_removed=True, engine=InlineEngine()).run()
    assert accepted.mended
    making.note("payments", Fate.ACCEPTED, lambda record: record.partition == 0 and record.offset in range(3, 6))
    more(range(3, 5))
    delete(1, (62, 63, 64, 70), mode="merge-on-read")
    assert RefillJob(load_config(making.config), "payments", engine=InlineEngine()).run().mended
    more(range(5, 7))
    delete(0, (101, 102), mode="copy-on-write")
    delete(1, (121, 125), mode="merge-on-read")
    gone = {(0, 101), (0, 102), (1, 121), (1, 125)}
    making.note("payments", Fate.DELETED, lambda record: (record.partition, record.offset) in gone)


def interrupt(making: Making) -> None:
    """Jobs killed before and after a commit, a failed compaction, waiting records."""
    making.produce("orders", (_order(2, 2_000 + number) for number in range(20)))
    making.note("orders", Fate.STAGED, _is_new(making, "orders"))
    _kill(making, "orders", "before_commit")
    making.produce("orders", (_order(2, 3_000 + number) for number in range(15)))
    making.note("orders", Fate.WAITING, _is_new(making, "orders"))
    making.produce("customers", (_customer(number) for number in range(150, 160)))
    making.note("customers", Fate.ARCHIVED)
    _kill(making, "customers", "after_commit")
    os.environ[VARIABLE] = "before_commit:raise"
    assert not any(done.commits for done in _compact(making, "events", partitions=frozenset({1})).topics)
    del os.environ[VARIABLE]
    making.produce("events", (_event(number) for number in range(140, 160)))
    making.note("events", Fate.WAITING, _is_new(making, "events"))


def _kill(making: Making, topic: str, point: str) -> None:
    text = making.config.read_text()
    for section in sorted(making.sections.keys() - {topic}):
        text = text.replace(to_toml({"topics": {section: making.sections[section]}}), "")
    alone = making.config.with_name("alone.toml")
    alone.write_text(text)
    killed = archive_in_a_process(alone, f"{point}:kill")
    assert killed.returncode == -signal.SIGKILL, killed


def _compact(making: Making, topic: str, *, partitions: frozenset[int] = frozenset()) -> CompactReport:
    wish = Wish(min_files=2, partitions=partitions)
    return Compact(load_config(making.config), [topic], wish, engine=InlineEngine).run()


def _is_new(making: Making, topic: str) -> Callable[[Seen], bool]:
    before = frozenset(key for key in making.records if key[0] == topic)
    return lambda record: (topic, record.partition, record.offset) not in before


def _order(version: int, number: int) -> dict[str, Any]:
    made = message_factory.GetMessageClass(descriptor_of(ORDERS[version], "shop.Order"))(id=number + 1)
    setattr(made, "customer" if version == 0 else "client", ("", "Zoë", "日本", "x" * 40)[number % 4])
    for index in range(number % 3):
        made.lines.add(sku=f"sku-{index}", count=-number if index else number)
    if version < 2:
        made.tags.update({"a": number, "": -1} if number % 4 == 0 else {})
    else:
        made.state, made.check = number % 5, 2**64 - 1 - number
        made.at.FromMilliseconds(START + number)
        if number % 6 == 0:
            made.parent.parent.id = number
    if version:
        made.note = b"\xff\x00%d" % number if number % 3 else b""
        if number % 4:
            made.card = "4242"
        else:
            made.cash = number % 8 == 0
    value: bytes | None = made.SerializeToString(deterministic=True)
    assert value is not None
    poison = {
        3: None,
        5: b"",
        7: b"\xff\xff\xff",
        9: value[:-1],
        11: value + b"\x08\x07",  # a field twice
        13: b"\x08\x81\x00" + value[2:],  # an over-long varint
        15: b"\x1a\x02\xc3\x28",  # a string that isn't UTF-8
        17: value + b"\x9a\x06\x03abc",  # a field that no version has
    }
    headers = {0: None, 1: [("trace", b"%d" % number)], 2: [("a", None), ("a", b""), ("ü", b"\xff")]}
    return {
        "value": poison.get(number % 19, value),
        "key": (None, b"", b"k%d" % number, b"\xff\xfe")[number % 4],
        "partition": number % PARTITIONS,
        "timestamp": START + version * DAY + number,
        "headers": headers[number % 3],
    }


def _customer(number: int) -> dict[str, Any]:
    name = NAMES[number % 5]
    return {
        "key": name,
        "value": None if number % 13 == 12 else b"%s lives at %d" % (name, number),
        "partition": number // 5 % PARTITIONS,
        "timestamp": START + number,
        "headers": [("by", b"web"), ("by", None)],
    }


def _event(number: int) -> dict[str, Any]:
    return {"value": b"event %d" % number, "key": b"%d" % (number % 4), "partition": number % PARTITIONS}


def _shipment(number: int) -> dict[str, Any]:
    made = message_factory.GetMessageClass(descriptor_of(SHIPMENTS, "shop.Shipment"))(id=number, weight=2**63 + number)
    if number % 4:
        made.to.region = ("eu", "us", "ü / x")[number % 3]
    made.parts.extend(f"part {index}" for index in range(number % 3))
    value = made.SerializeToString(deterministic=True)
    return {
        "value": None if number % 17 == 3 else b"\xff\xff" if number % 19 == 5 else value,
        "key": None if number % 11 == 0 else b"k%d" % random.Random(number).randrange(12),
        "partition": number % PARTITIONS,
        "timestamp": START + number // 120 * DAY + number,
    }


def _payment(number: int) -> dict[str, Any]:
    kind = message_factory.GetMessageClass(descriptor_of(PAYMENTS, "shop.Payment"))
    made = kind(id=number, payer=f"payer {number % 9}", amount=(0.1, -0.0, 1e300)[number % 3], parts=range(number % 4))
    value = made.SerializeToString(deterministic=True)
    return {
        "value": value + b"\x08\x01" if number % 10 == 7 else value,
        "key": b"%d" % (number % 9),
        "partition": number % PARTITIONS,
        "timestamp": START + number // 40 * DAY + number,
    }
