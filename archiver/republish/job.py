"""`replay --to-kafka`: checks, the transfer, its offset map, and the groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from archiver.archive.topic_archive import TopicArchive
from archiver.codecs import Codec
from archiver.errors import ConfigError, UnknownTopic
from archiver.kafka.admin import ClusterAdmin
from archiver.kafka.broker import BrokerClient
from archiver.observer import Observer, all_of, ignore
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.output_file import OutputFile
from archiver.republish.groups import GroupTranslation
from archiver.republish.offset_map import write_offset_map
from archiver.republish.progress_log import Course
from archiver.republish.rate import UNLIMITED, Rate
from archiver.republish.refusals import RefusalCheck, TargetLimits, needed_settings
from archiver.republish.report import TransferEvent, TransferFinished, TransferNoted, TransferReport
from archiver.republish.target import Target, check_progress_topic, check_target, create_target
from archiver.republish.transfer import Transfer, TransferSettings

PROGRESS_TOPIC: Final = "archiver-replay-progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOrder:
    """`name` defaults to both topics."""

    target: str
    name: str | None = None
    start: str = ""
    where: str = ""
    creates: bool = False
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    appends: bool = False
    rate: Rate = UNLIMITED
    codec: Codec = Codec.ZSTD
    progress_topic: str = PROGRESS_TOPIC
    offset_map: Path | None = None
    groups: tuple[str, ...] = ()

    def named(self, topic: str) -> str:
        return self.name or f"{topic}-to-{self.target}"


class TransferJob:
    def __init__(
        self,
        archive: TopicArchive,
        selection: Selection,
        order: TransferOrder,
        *,
        source: Mapping[str, str],
        destination: Mapping[str, str],
        observer: Observer[TransferEvent] = ignore,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._now_ms = now_ms
        self._archive = archive
        self._selection = selection
        self._order = order
        self._source = source
        self._destination = destination
        self._observer = all_of(observer)

    def run(self) -> TransferReport:
        """Raises ConfigError before any work."""
        order, archive = self._order, self._archive
        chosen = self._selection.chosen(archive)
        if not chosen:
            raise ConfigError("nothing of this topic is archived yet", topic=archive.topic)
        selected = SelectedRecords.of(archive, self._selection)
        with ExitStack() as stack:
            admin = stack.enter_context(ClusterAdmin(self._destination))
            brokers = stack.enter_context(BrokerClient(self._destination))
            self._check_place(brokers)
            if order.creates and not _exists(brokers, order.target):
                settings = {**needed_settings(archive, self._selection), **order.topic_settings}
                create_target(admin, order.target, max(archive.partitions) + 1, settings)
            target = check_target(brokers, admin, order.target, partitions=chosen)
            check_progress_topic(brokers, admin, order.progress_topic)
            transfer = self._transfer(brokers, target, selected)
            transfer.check()
            limits = TargetLimits.of(target.name, target.settings, now_ms=self._now_ms())
            RefusalCheck(archive, selected.selection, limits, order.codec).run(transfer.remaining())
            translation = self._translation(stack, admin, brokers, chosen)
            for note in target.notes:
                self._observer(TransferNoted(text=note))
            report = transfer.run()
            if (unjudged := selected.unjudged.text(archive.topic)) is not None:
                self._observer(TransferNoted(text=unjudged))
            if order.offset_map is not None:
                with OutputFile(order.offset_map) as output:
                    write_offset_map(transfer.log.entries(), output)
                report = replace(report, offset_map=order.offset_map)
            if translation is not None:
                report = replace(report, groups=translation.run(order.groups, transfer.log))
        self._observer(TransferFinished(report=report))
        return report

    def _check_place(self, brokers: BrokerClient) -> None:
        order, archive = self._order, self._archive
        if order.target in {archive.topic, order.progress_topic} and brokers.cluster_id() == archive.cluster_id:
            raise ConfigError(
                "the target is the archived topic itself, or the topic of progress: name another topic, or another "
                "cluster with --bootstrap",
                topic=order.target,
            )

    def _transfer(self, brokers: BrokerClient, target: Target, selected: SelectedRecords) -> Transfer:
        order, archive = self._order, self._archive
        course = Course(
            cluster_id=archive.cluster_id,
            topic=archive.topic,
            table_id=str(archive.table_uuid),
            target=target.name,
            target_id=target.id,
            start=order.start,
            where=order.where,
        )
        settings = TransferSettings(
            name=order.named(archive.topic),
            progress_topic=order.progress_topic,
            rate=order.rate,
            codec=order.codec,
            appends=order.appends,
        )
        return Transfer(
            selected,
            course,
            brokers=brokers,
            target=target,
            settings=settings,
            observer=self._observer,
        )

    def _translation(
        self, stack: ExitStack, admin: ClusterAdmin, brokers: BrokerClient, partitions: tuple[int, ...]
    ) -> GroupTranslation | None:
        """Connect before the work, to fail early. `stack` closes it."""
        if not self._order.groups:
            return None
        source_brokers = stack.enter_context(BrokerClient(self._source))
        translation = GroupTranslation(
            source=stack.enter_context(ClusterAdmin(self._source)),
            source_brokers=source_brokers,
            topic=self._archive.topic,
            destination=admin,
            destination_brokers=brokers,
            target=self._order.target,
            partitions=partitions,
        )
        translation.names(self._order.groups)
        cluster_id = source_brokers.cluster_id()
        if self._archive.cluster_id and cluster_id != self._archive.cluster_id:
            raise ConfigError(
                "[kafka] names another cluster than the one that was archived: groups can't be read from it",
                archived=self._archive.cluster_id,
                found=cluster_id,
            )
        return translation


def _exists(brokers: BrokerClient, topic: str) -> bool:
    try:
        brokers.describe([topic])
    except UnknownTopic:
        return False
    return True
