"""From the table back to Kafka records: plan, scan, assemble, and the consumer over them."""

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from archiver.replay.archive import TopicArchive, open_archive
from archiver.replay.consumer import ReplayConsumer
from archiver.replay.export import write_arrow, write_jsonl
from archiver.replay.message import ReplayMessage
from archiver.replay.options import ReplayOptions
from archiver.replay.selection import Selection

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "ReplayConsumer",
    "ReplayMessage",
    "ReplayOptions",
    "Selection",
    "TopicArchive",
    "TopicPartition",
    "open_archive",
    "write_arrow",
    "write_jsonl",
]
