"""Replay archived topics: a consumer like confluent_kafka's, and exports.

Names are imported at first use: an export needs no `confluent_kafka`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.light_start import late_names

if TYPE_CHECKING:
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    from archiver.archive.topic_archive import TopicArchive, open_archive
    from archiver.records.selection import Selection
    from archiver.replay.consumer import ReplayConsumer, ReplayMessage, ReplayOptions
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

__getattr__ = late_names(
    __name__,
    {
        "archiver.archive.topic_archive": ("TopicArchive", "open_archive"),
        "archiver.replay.consumer": ("ReplayConsumer", "ReplayMessage", "ReplayOptions"),
        "archiver.replay.export": ("write_arrow", "write_jsonl"),
        "archiver.records.selection": ("Selection",),
        "confluent_kafka": ("OFFSET_BEGINNING", "OFFSET_END", "TopicPartition"),
    },
)
