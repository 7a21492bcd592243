"""A consumer of archived topics with the methods of `confluent_kafka.Consumer`."""

from archiver.replay.consumer.consumer import ReplayConsumer
from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.options import ReplayOptions

__all__ = ["ReplayConsumer", "ReplayMessage", "ReplayOptions"]
