"""From the table back to Kafka records: plan, scan, assemble, and the consumer over them."""

from archiver.replay.archive import TopicArchive, open_archive
from archiver.replay.consumer import ReplayConsumer
from archiver.replay.message import ReplayMessage
from archiver.replay.options import ReplayOptions

__all__ = ["ReplayConsumer", "ReplayMessage", "ReplayOptions", "TopicArchive", "open_archive"]
