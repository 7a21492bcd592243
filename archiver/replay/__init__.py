"""Replaying archived topics: a consumer like confluent_kafka's, and export as JSON lines or Arrow.

The ways in which users get records belong here. Reading tables, files and rows belongs in `archiver.archive`.
"""

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.replay.consumer import ReplayConsumer, ReplayMessage, ReplayOptions
from archiver.replay.export import write_arrow, write_jsonl
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
