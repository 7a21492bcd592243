"""Kafka's tiered storage (KIP-405) in a folder, by its test classes: 1 MB from Maven Central, once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from archiver.local import releases
from tests.support.servers.fetched import Dependency, fetched, retrieve

_STORAGE: Final = Dependency(
    organisation="org.apache.kafka", name="kafka-storage", revision=releases.KAFKA, classifier="test"
)

TIERED: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "file.delete.delay.ms": "100",
}
"""Settings of a topic whose closed segments are only in the tier."""


def tiered_settings(tier: Path) -> Mapping[str, object]:
    """Settings of a broker whose tier is this folder."""
    folder = fetched(f"kafka-storage-test-{releases.KAFKA}", lambda fresh: retrieve((_STORAGE,), fresh))
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": next(folder.glob("*.jar")),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rsm.config.dir": tier,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "remote.log.manager.task.interval.ms": 200,
        "log.retention.check.interval.ms": 200,
        "log.initial.task.delay.ms": 200,
    }
