"""MirrorMaker 2, which copies archived topics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archiver.local.java import find_java
from archiver.local.releases import KAFKA
from tests.support.servers.fetched import Dependency, fetched, retrieve

_SETTINGS = {
    "clusters": "archive, target",
    "archive->target.enabled": "true",
    "target->archive.enabled": "false",
    "archive->target.emit.heartbeats.enabled": "false",
    "target->archive.emit.heartbeats.enabled": "false",
    "sync.topic.acls.enabled": "false",  # an archive's rights are in its configuration
    "offset-syncs.topic.location": "target",  # the source can't be written to
    "offset.lag.max": "0",
    "sync.group.offsets.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "archive.consumer.isolation.level": "read_committed",
    "archive.consumer.auto.offset.reset": "earliest",
    "tasks.max": "1",
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "dedicated.mode.enable.internal.rest": "false",
}


def _fetch(folder: Path) -> None:
    mirror = Dependency(organisation="org.apache.kafka", name="connect-mirror", revision=KAFKA, with_needs=True)
    log = Dependency(organisation="org.slf4j", name="slf4j-simple", revision="1.7.36", with_needs=True)
    retrieve([mirror, log], folder)


@contextmanager
def mirroring(source: str, target: str, topic: str, group: str, scratch: Path) -> Iterator[str]:
    settings = {
        **_SETTINGS,
        "archive.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        "archive->target.topics": topic,
        "archive->target.groups": group,
    }
    properties, log = scratch / "mirror.properties", scratch / "mirror.log"
    properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), encoding="utf-8")
    folder = fetched(f"connect-mirror-{KAFKA}", _fetch)
    program = ("org.apache.kafka.connect.mirror.MirrorMaker", str(properties))
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [find_java().executable, "-Xmx512m", "-cp", f"{folder}/*", *program], stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield f"archive.{topic}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text(errors='replace')[-6000:]}") from error
        finally:
            process.terminate()
            process.wait(60)
