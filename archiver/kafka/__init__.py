"""A client of any Kafka cluster: topics, offsets, fetches of ranges.

    with BrokerClient({"bootstrap.servers": "localhost:9092"}) as client:
        topic = client.describe(["orders"])["orders"]
        end = client.list_offsets("orders", topic.partitions, "latest_stable")
        for batches in PartitionFetcher(client, "orders", topic.topic_id, 0).batches(0, end[0]):
            print(batches.records)

Names are imported at first use: group commands need no Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.kafka.open_transactions import OpenTransaction, open_transactions  # a module has that name, too
from archiver.light_start import late_names

if TYPE_CHECKING:
    from archiver.kafka.broker import At, BrokerClient, EpochEnd
    from archiver.kafka.fetch import PartitionFetcher, log_reader
    from archiver.kafka.fetched import Fetched
    from archiver.kafka.leaders import PartitionDescription, TopicDescription
    from archiver.kafka.losses import check_topic_id
    from archiver.kafka.options import KafkaOptions, parse_kafka_options

__all__ = [
    "At",
    "BrokerClient",
    "EpochEnd",
    "Fetched",
    "KafkaOptions",
    "OpenTransaction",
    "PartitionDescription",
    "PartitionFetcher",
    "TopicDescription",
    "check_topic_id",
    "log_reader",
    "open_transactions",
    "parse_kafka_options",
]

__getattr__ = late_names(
    __name__,
    {
        "archiver.kafka.broker": ("At", "BrokerClient", "EpochEnd"),
        "archiver.kafka.fetch": ("PartitionFetcher", "log_reader"),
        "archiver.kafka.leaders": ("PartitionDescription", "TopicDescription"),
        "archiver.kafka.losses": ("check_topic_id",),
        "archiver.kafka.options": ("KafkaOptions", "parse_kafka_options"),
        "archiver.kafka.fetched": ("Fetched",),
    },
)
