"""`archiver verify` proves all records of right tables."""

from __future__ import annotations

from collections.abc import Iterator

from archiver.config import load_config
from archiver.upkeep.verify.findings import GapKind
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from tests.fault.soak import readings
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.scene import Scene, Subject, Verified
from tests.fault.soak.verdict import Verdict
from tests.support.archive.readers import digest_of
from tests.support.engine.inline_engine import InlineEngine

_SHOWN = 5


def judge_verified(scene: Scene, *, verdict: Verdict) -> Verdict:
    more = tuple(anomaly for subject in scene.subjects for anomaly in _found(scene, subject))
    return Verdict(records=verdict.records, digest=verdict.digest, anomalies=(*verdict.anomalies, *more))


def _found(scene: Scene, subject: Subject) -> Iterator[Anomaly]:
    report = Verify(
        load_config(scene.direct), (subject.topic,), engine=InlineEngine(), options=VerifyOptions(resumes=False)
    ).run()
    texts = [str(failure.error) for failure in report.failed]
    texts += [f"{fault.kind}: {fault.message} ({fault.place})" for topic in report.topics for fault in topic.faults]
    texts += [text for topic in report.topics for text in _otherwise(subject.verified, topic)]
    for text in texts[:_SHOWN]:
        yield Anomaly(defect=Defect.UNTOLD, where=f"verify of {subject.topic}", text=text)


def _otherwise(known: Verified, report: VerifiedTopic) -> Iterator[str]:
    records = readings.in_order(known.records)
    if (report.rows, report.digest) != (len(records), digest_of(records)):
        yield f"{report.rows} records are proven, {report.digest}; there are {len(records)}, {digest_of(records)}"
    caused = {GapKind.NO_RECORD, *_caused(known)}
    for gap in (gap for partition in report.partitions for gap in partition.gaps if gap.kind not in caused):
        yield f"a gap that no fault made: {gap}"


def _caused(known: Verified) -> Iterator[GapKind]:
    if known.lost:
        yield GapKind.LOST
    if known.first:
        yield GapKind.RETIRED
    if known.erased:
        yield GapKind.ERASED
