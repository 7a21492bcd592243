"""A consumer of archived topics with the methods of `confluent_kafka.Consumer`.

`consumer` is the class that users see. An `assignment` holds a `partition_reader` for each assigned partition;
`assignment_changes` changes it and `poll_loop` takes records from it. How archives are read belongs in
`archiver.archive`.
"""

from archiver.replay.consumer.consumer import ReplayConsumer
from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.options import ReplayOptions

__all__ = ["ReplayConsumer", "ReplayMessage", "ReplayOptions"]
