"""From the table back to Kafka records: plan, scan, assemble, and the consumer over them."""

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from archiver.archive.selection import Selection
from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.replay.consumer.consumer import ReplayConsumer
from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.options import ReplayOptions
from archiver.replay.export import write_arrow, write_jsonl

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
