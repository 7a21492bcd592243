"""The consumer, on a table in a folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from archiver.archive.records import RECORDS
from archiver.config import Config, load_config
from archiver.errors import ArchiveReplaced, ConfigError, ObjectMissing
from archiver.replay import ReplayConsumer, ReplayMessage
from tests.support.archive.lake import Lake


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[topics.orders]\n'
    )
    return load_config(path, {})


@pytest.fixture
def filled(lake: Lake, archive: Any) -> Lake:
    lake.add(archive.rows, archive.batch(rows(archive, 0, 10, 15)), 10, 15)
    lake.add(archive.rows, archive.batch(rows(archive, 0, 15, 20)), 15, 22)
    lake.add(archive.rows, archive.batch(rows(archive, 1, 0, 5)), 0, 5, partition=1)
    return lake


def rows(archive: Any, partition: int, start: int, end: int) -> list[Any]:
    return [
        archive.row(
            offset=offset, partition=partition, key=b"k%d" % offset, value=b"v%d" % offset, timestamp=1_000 + offset
        )
        for offset in range(start, end)
    ]


@pytest.fixture
def consumer(filled: Lake, config: Config) -> Iterator[ReplayConsumer]:
    with ReplayConsumer(config, {"replay.refresh.ms": 50}, tables=filled) as consumer:
        yield consumer


def drained(consumer: ReplayConsumer, timeout: float = 0.3) -> list[tuple[int, int]]:
    """Poll until a poll gives nothing and no read is running: a busy machine may need longer."""
    positions = []
    while (message := consumer.poll(timeout)) or any(
        consumer._assignment.running_reads(lambda state: not state.is_paused)
    ):
        if message:
            assert message.error() is None
            positions.append((message.partition(), message.offset()))
    return positions


def of(partition: int, start: int, end: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, end)]


def test_it_has_every_method_of_the_consumer_it_stands_in_for():
    methods = {name for name in dir(confluent_kafka.Consumer) if not name.startswith("_")}
    assert methods - set(dir(ReplayConsumer)) == set()
    accessors = {name for name in dir(confluent_kafka.Message) if not name.startswith(("_", "deserialized"))}
    assert accessors - set(dir(ReplayMessage)) == set()


def test_records_come_in_order_from_the_offset_given(consumer: ReplayConsumer):
    consumer.assign([TopicPartition("orders", 0, 12)])
    assert drained(consumer) == of(0, 12, 20)
    consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
    assert drained(consumer) == of(0, 10, 20)
    consumer.assign([TopicPartition("orders", 1)])
    assert drained(consumer) == of(1, 0, 5)


def test_several_partitions_each_in_order(consumer: ReplayConsumer):
    consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
    positions = drained(consumer)
    assert [position for position in positions if position[0] == 0] == of(0, 10, 20)
    assert [position for position in positions if position[0] == 1] == of(1, 0, 5)


def test_a_message_shows_the_record(lake: Lake, archive: Any, config: Config):
    sent = [
        archive.row(
            offset=3, key=b"k", value=b"value", headers=[(b"a", b"1"), (b"a", None), (b"\xff", b"")], timestamp=7
        ),
        archive.row(offset=4, key=None, value=None, timestamp=None, timestamp_type=-1),
    ]
    lake.add(archive.rows, archive.batch(sent), 0, 10)
    with ReplayConsumer(config, tables=lake) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        first, second = consumer.consume(2, 5)
        assert (first.topic(), first.partition(), first.offset()) == ("orders", 0, 3)
        assert (first.key(), first.value(), len(first), len(second)) == (b"k", b"value", 5, 0)
        assert first.headers() == [("a", b"1"), ("a", None), ("\udcff", b"")]
        assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 7)
        assert second.timestamp() == (TIMESTAMP_NOT_AVAILABLE, -1)
        assert (second.key(), second.value(), second.headers(), second.error()) == (None, None, None, None)
        assert first.latency() is None
        first.set_value({"a": 1})
        first.set_key("k")
        assert (first.value(), first.key(), second.value(), len(first)) == ({"a": 1}, "k", None, 5)


def test_consume_takes_what_comes_in_time(consumer: ReplayConsumer):
    consumer.assign([TopicPartition("orders", 0)])
    assert [message.offset() for message in consumer.consume(7, 5)] == list(range(10, 17))
    began = time.monotonic()
    assert [message.offset() for message in consumer.consume(100, 0.2)] == [17, 18, 19]
    assert 0.15 < time.monotonic() - began < 3
    assert consumer.consume(0, 0) == []
    with pytest.raises(ValueError, match="1M"):
        consumer.consume(1_000_001)


def test_poll_of_zero_does_not_wait(consumer: ReplayConsumer):
    consumer.assign([TopicPartition("orders", 0, OFFSET_END)])
    began = time.monotonic()
    assert consumer.poll(0) is None
    assert time.monotonic() - began < 0.5


def test_the_end_is_told_once_and_again_after_more_came(filled: Lake, archive: Any, config: Config):
    options = {"enable.partition.eof": True, "replay.refresh.ms": 50}
    with ReplayConsumer(config, options, tables=filled) as consumer:
        consumer.assign([TopicPartition("orders", 0, 18)])
        messages = consumer.consume(3, 5)
        assert [message.offset() for message in messages] == [18, 19, 22]
        error = messages[-1].error()
        assert error is not None
        assert error.code() == KafkaError._PARTITION_EOF
        assert consumer.poll(0.3) is None
        filled.add(archive.rows, archive.batch(rows(archive, 0, 22, 24)), 22, 24)
        assert [message.offset() for message in consumer.consume(3, 5)] == [22, 23, 24]


def test_it_waits_for_the_archive_to_grow(consumer: ReplayConsumer, filled: Lake, archive: Any):
    consumer.assign([TopicPartition("orders", 0, 30), TopicPartition("orders", 1, OFFSET_END)])
    assert consumer.poll(0.2) is None
    filled.add(archive.rows, archive.batch(rows(archive, 0, 22, 40)), 22, 40)
    filled.add(archive.rows, archive.batch(rows(archive, 1, 5, 7)), 5, 7, partition=1)
    assert sorted(drained(consumer, 1.0)) == of(0, 30, 40) + of(1, 5, 7)


def test_seek(consumer: ReplayConsumer):
    consumer.assign([TopicPartition("orders", 0)])
    consumer.consume(4, 5)
    consumer.seek(TopicPartition("orders", 0, 11))
    assert [message.offset() for message in consumer.consume(2, 5)] == [11, 12]
    consumer.seek(TopicPartition("orders", 0, 19))
    assert drained(consumer) == [(0, 19)]
    consumer.seek(TopicPartition("orders", 0, OFFSET_BEGINNING))
    assert drained(consumer) == of(0, 10, 20)
    with pytest.raises(KafkaException, match="not assigned"):
        consumer.seek(TopicPartition("orders", 1, 0))
    with pytest.raises(KafkaException, match="no offset"):
        consumer.seek(TopicPartition("orders", 0, -77))


def test_pause_and_resume(consumer: ReplayConsumer):
    both = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    consumer.assign(both)
    consumer.consume(1, 5)
    consumer.pause(both[:1])
    assert {partition for partition, _ in drained(consumer)} <= {1}
    consumer.resume(both[:1])
    assert drained(consumer)[-1] == (0, 19)


def test_positions(consumer: ReplayConsumer):
    places = [TopicPartition("orders", 0, 12), TopicPartition("orders", 1)]
    consumer.assign(places)
    assert [position.offset for position in consumer.position(places)] == [OFFSET_INVALID, OFFSET_INVALID]
    consumer.pause(places[1:])
    consumer.consume(3, 5)
    assert [position.offset for position in consumer.position(places)] == [15, OFFSET_INVALID]
    assert [(position.partition, position.offset) for position in consumer.assignment()] == [(0, 15), (1, 0)]


def test_incremental_assignment(consumer: ReplayConsumer):
    consumer.incremental_assign([TopicPartition("orders", 0, 18)])
    assert drained(consumer) == of(0, 18, 20)
    consumer.incremental_assign([TopicPartition("orders", 1, 3)])
    with pytest.raises(KafkaException, match="already assigned"):
        consumer.incremental_assign([TopicPartition("orders", 1, 3)])
    consumer.incremental_unassign([TopicPartition("orders", 0)])
    assert drained(consumer) == of(1, 3, 5)
    consumer.unassign()
    assert consumer.assignment() == []
    with pytest.raises(KafkaException, match="twice"):
        consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 0)])
    with pytest.raises(TypeError):
        consumer.assign("orders")  # type: ignore[arg-type]


def test_watermarks_and_times(consumer: ReplayConsumer):
    assert consumer.get_watermark_offsets(TopicPartition("orders", 0)) == (10, 22)
    assert consumer.get_watermark_offsets(TopicPartition("orders", 7), cached=True) == (0, 0)
    asked = [TopicPartition("orders", 0, 1_013), TopicPartition("orders", 1, 0), TopicPartition("orders", 0, 10**15)]
    assert [position.offset for position in consumer.offsets_for_times(asked)] == [13, 0, OFFSET_END]


def test_commits_live_as_long_as_the_consumer(consumer: ReplayConsumer):
    partition = TopicPartition("orders", 0)
    with pytest.raises(KafkaException, match="nothing was consumed"):
        consumer.commit(asynchronous=False)
    assert consumer.committed([partition])[0].offset == OFFSET_INVALID
    consumer.assign([partition])
    message = consumer.consume(3, 5)[-1]
    assert consumer.commit(asynchronous=True) is None
    assert consumer.committed([partition])[0].offset == 13
    consumer.commit(message=message)
    consumer.store_offsets(offsets=[TopicPartition("orders", 0, 16)])
    assert consumer.committed([partition])[0].offset == 13
    (committed,) = consumer.commit(asynchronous=False) or ()
    assert committed.offset == 16
    consumer.assign([partition])
    assert drained(consumer) == of(0, 16, 20)
    with pytest.raises(ValueError, match="exclusive"):
        consumer.commit(message=message, offsets=[partition])


@pytest.mark.parametrize("topics", [["orders"], ["^ord.*"], ["^o", "orders"]])
def test_subscription(consumer: ReplayConsumer, topics: list[str]):
    calls: list[tuple[str, list[int]]] = []
    consumer.subscribe(
        topics,
        on_assign=lambda _, given: calls.append(("assigned", [position.partition for position in given])),
        on_revoke=lambda _, given: calls.append(("revoked", [position.partition for position in given])),
    )
    assert calls == []
    assert sorted(drained(consumer)) == of(0, 10, 20) + of(1, 0, 5)
    consumer.unsubscribe()
    assert calls == [("assigned", [0, 1]), ("revoked", [0, 1])]
    assert consumer.poll(0) is None


def test_a_callback_may_choose_the_offsets(consumer: ReplayConsumer):
    def choose(one: ReplayConsumer, given: list[TopicPartition]) -> None:
        one.assign(
            [TopicPartition(position.topic, position.partition, 4) for position in given if position.partition == 1]
        )

    consumer.subscribe(["orders"], on_assign=choose)
    assert drained(consumer) == [(1, 4)]


def test_a_subscription_gains_new_partitions(consumer: ReplayConsumer, filled: Lake, archive: Any):
    consumer.subscribe(["orders"])
    drained(consumer)
    filled.add(archive.rows, archive.batch(rows(archive, 5, 3, 6)), 3, 6, partition=5)
    assert drained(consumer, 1.0) == of(5, 3, 6)


@pytest.mark.parametrize(
    ("reset", "expected"), [("latest", []), ("earliest", of(0, 10, 20)), ("smallest", of(0, 10, 20))]
)
@pytest.mark.parametrize("offset", [OFFSET_INVALID, 3])
def test_reset(filled: Lake, config: Config, reset: str, expected: list[tuple[int, int]], offset: int):
    with ReplayConsumer(config, {"auto.offset.reset": reset}, tables=filled) as consumer:
        consumer.assign([TopicPartition("orders", 0, offset)])
        assert drained(consumer) == expected


def test_reset_to_error(filled: Lake, config: Config):
    with ReplayConsumer(config, {"auto.offset.reset": "error"}, tables=filled) as consumer:
        consumer.assign([TopicPartition("orders", 0, 10)])
        for offset in (9, OFFSET_INVALID):
            with pytest.raises(KafkaException, match="isn't archived"):
                consumer.assign([TopicPartition("orders", 0, offset)])


@pytest.mark.parametrize("option", [{"group.id": "g"}, {"auto.offset.reset": "whenever"}, {"replay.refresh.ms": 0}])
def test_options_that_cannot_be_right_are_named(filled: Lake, config: Config, option: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(option))):
        ReplayConsumer(config, option, tables=filled)


def test_batches_end_where_the_archive_ended(consumer: ReplayConsumer, filled: Lake, archive: Any):
    consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1, 3)])
    consumer.consume(1, 5)
    positions = []
    for batch in consumer.batches():
        filled.add(archive.rows, archive.batch(rows(archive, 1, 5, 6)), 5, 6, partition=1) if not positions else None
        assert batch.schema.equals(RECORDS)
        assert batch.schema.metadata == {b"topic": b"orders"}
        positions += list(zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True))
    assert len(positions) == 11
    assert sorted(positions)[-2:] == of(1, 3, 5) if (0, 10) not in positions else of(1, 4, 5)
    assert list(consumer.batches()) == []


def test_more_partitions_than_are_read_at_a_time(lake: Lake, archive: Any, config: Config):
    for partition in range(12):
        lake.add(archive.rows, archive.batch(rows(archive, partition, 0, 30)), 0, 30, partition=partition)
    with ReplayConsumer(config, {"replay.parallelism": 2}, tables=lake) as consumer:
        places = [TopicPartition("orders", partition) for partition in range(12)]
        consumer.assign(places)
        consumer.pause(places[:3])
        assert sorted(drained(consumer)) == [
            position for partition in range(3, 12) for position in of(partition, 0, 30)
        ]
        assert sum(batch.num_rows for batch in consumer.batches()) == 0
        consumer.resume(places[:3])
        assert sum(batch.num_rows for batch in consumer.batches()) == 90


def test_topics(consumer: ReplayConsumer):
    described = consumer.list_topics()
    assert described.cluster_id == "cluster"
    assert sorted(described.topics["orders"].partitions) == [0, 1]
    assert consumer.list_topics("orders").topics.keys() == {"orders"}
    assert consumer.cluster_id() == "cluster"
    assert consumer.memberid() is None


def test_what_an_archive_cannot_do_says_so(consumer: ReplayConsumer):
    with pytest.raises(KafkaException, match="no groups"):
        consumer.consumer_group_metadata()
    with pytest.raises(KafkaException, match="catalog"):
        consumer.set_sasl_credentials("a", "b")


def test_closed(filled: Lake, config: Config):
    consumer = ReplayConsumer(config, tables=filled)
    consumer.assign([TopicPartition("orders", 0)])
    consumer.close()
    consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)


def test_a_failure_is_raised_and_reading_goes_on_after_it(consumer: ReplayConsumer, filled: Lake):
    lost = Path(sorted(file.file_path for file in filled.files())[1].removeprefix("file://"))
    data = lost.read_bytes()
    lost.unlink()
    consumer.assign([TopicPartition("orders", 0)])
    assert [message.offset() for message in consumer.consume(100, 5)] == list(range(10, 15)), "none is lost with it"
    with pytest.raises(ObjectMissing):
        consumer.poll(5)
    lost.write_bytes(data)
    assert drained(consumer) == of(0, 15, 20)


def test_waiting_consumer_learns_of_its_recreated_table(
    consumer: ReplayConsumer, filled: Lake, archive: Any, tmp_path: Path
):
    consumer.assign([TopicPartition("orders", 1)])
    assert drained(consumer) == of(1, 0, 5)
    replacement = Lake(tmp_path / "anew", archive.rows)
    replacement.add(archive.rows, archive.batch(rows(archive, 1, 0, 9)), 0, 9, partition=1)
    filled.metadata = replacement.metadata
    for _ in range(2):
        with pytest.raises(ArchiveReplaced):
            consumer.consume(1, 5.0)


class TestRetiredBeneath:
    @pytest.fixture
    def long(self, lake: Lake, archive: Any) -> Lake:
        for start in range(0, 100, 10):
            lake.add(archive.rows, archive.batch(rows(archive, 0, start, start + 10)), start, start + 10)
        return lake

    @staticmethod
    def reading(lake: Lake, config: Config, reset: str, start: int = 0) -> ReplayConsumer:
        options = {"auto.offset.reset": reset, "replay.refresh.ms": 50, "enable.partition.eof": True}
        consumer = ReplayConsumer(config, options, tables=lake)
        consumer.assign([TopicPartition("orders", 0, start)])
        return consumer

    @staticmethod
    def offsets(consumer: ReplayConsumer, count: int) -> list[int]:
        offsets: list[int] = []
        while len(offsets) < count:
            message = consumer.poll(5)
            assert message is not None
            if message.error() is not None:
                break
            offsets.append(message.offset())
        return offsets

    @pytest.mark.parametrize("start", [0, OFFSET_BEGINNING])
    def test_error_is_raised_at_the_first_missing_record(self, long: Lake, config: Config, start: int) -> None:
        with self.reading(long, config, "error", start) as consumer:
            seen = self.offsets(consumer, 5)
            long.retire(80)
            with pytest.raises(KafkaException) as caught:
                seen.extend(self.offsets(consumer, 1)[0] for _ in range(100))
            assert seen == list(range(len(seen)))
            assert len(seen) < 80
            error = caught.value.args[0]
            assert error.code() == KafkaError._AUTO_OFFSET_RESET
            assert f"orders [0]: offset {len(seen)} was retired, and the archive begins at 80" in error.str()
            assert consumer.position([TopicPartition("orders", 0)])[0].offset == len(seen)
            with pytest.raises(KafkaException):
                consumer.poll(5)
            consumer.seek(TopicPartition("orders", 0, 80))
            assert self.offsets(consumer, 100) == list(range(80, 100))

    def test_earliest_goes_on_at_the_first_offset_and_logs_it(
        self, long: Lake, config: Config, caplog: pytest.LogCaptureFixture
    ) -> None:
        with self.reading(long, config, "earliest") as consumer:
            seen = self.offsets(consumer, 5)
            long.retire(80)
            seen += self.offsets(consumer, 100)
        before = [offset for offset in seen if offset < 80]
        assert before == list(range(len(before)))
        assert seen[len(before) :] == list(range(80, 100))
        assert f"offset {len(before)} was retired, and the archive begins at 80" in caplog.text

    def test_latest_goes_on_at_the_end(self, long: Lake, config: Config, caplog: pytest.LogCaptureFixture) -> None:
        with self.reading(long, config, "latest", start=0) as consumer:
            seen = self.offsets(consumer, 5)
            long.retire(80)
            seen += self.offsets(consumer, 100)
            assert seen == list(range(len(seen)))
            assert consumer.position([TopicPartition("orders", 0)])[0].offset <= 80
        assert "reading goes on at the end, 100" in caplog.text

    def test_a_compaction_meanwhile_is_not_noticed(self, long: Lake, config: Config) -> None:
        with self.reading(long, config, "error") as consumer:
            seen = self.offsets(consumer, 5)
            long.rewrite(drop=True)
            assert seen + self.offsets(consumer, 100) == list(range(100))
