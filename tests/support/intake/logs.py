"""Logs on a disk in memory."""

from __future__ import annotations

from archiver.intake.segments import LogSurvey
from archiver.intake.topic_log import LogLimits, TopicLog
from tests.support.intake.lossy_disk import LossyDisk

LIMITS = LogLimits(wal_bytes=1 << 20, segment_bytes=64 << 10)


def survey_of(disk: LossyDisk) -> LogSurvey:
    return LogSurvey.read(disk, topic="t", most_clients=10)


def opened_log(disk: LossyDisk, *, limits: LogLimits = LIMITS, epoch: int = 1) -> TopicLog:
    survey = survey_of(disk)
    log = TopicLog(disk, topic="t", log_id=survey.log_id, epoch=epoch, limits=limits, clock=lambda: 1)
    log.begin(survey)
    return log
