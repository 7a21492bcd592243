"""`archiver verify` on seeded injuries."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from tests.support.archive.injuries import INJURIES
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.patient import healed
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

COUNT = int(os.environ.get("INJURIES", "200"))
SEED = int(os.environ.get("SEED", "1"))
OUT = os.environ.get("OUT")


def verified(config: Path, topic: str) -> VerifiedTopic:
    report = Verify(load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(resumes=False)).run()
    assert not report.failed, report.failed
    return report.topics[0]


def found_in(config: Path, topic: str) -> set[str]:
    report = Verify(load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(resumes=False)).run()
    faults = {str(fault.kind) for topic in report.topics for fault in topic.faults}
    return faults | {type(failure.error).__name__ for failure in report.failed}


def test_verify_finds_200_injuries_and_nothing_once_healed(stack: Stack) -> None:
    topic = stack.topic(partitions=2)
    config = stack.config({topic: {}})
    for start in range(0, 400, 100):
        records = numbered(range(start, start + 100), partitions=2)
        headers = [("h", b"v"), ("n", None)]
        stack.produce(topic, *({**fields, "key": b"k%d" % n, "headers": headers} for n, fields in enumerate(records)))
        archive_once(config)
    root = verified(config, topic).root
    missed: list[str] = []
    counts: Counter[str] = Counter()
    false: list[object] = []
    names = sorted(INJURIES)
    for number in range(COUNT):
        name, seed = names[number % len(names)], SEED + number
        with healed(config) as patient:
            injury = INJURIES[name](patient, seed)
            faults = found_in(config, topic)
        if not faults:
            missed.append(f"{name} with seed {seed}: {injury}")
        counts.update(f"{name}: {kind}" for kind in faults)
        if number % len(names) == len(names) - 1 or number == COUNT - 1:
            healthy = verified(config, topic)
            false += [*healthy.faults, *([] if healthy.root == root else ["another root"])]
    if OUT:
        result = {
            "injuries": COUNT,
            "missed": missed,
            "false": list(map(str, false)),
            "told": dict(counts.most_common()),
        }
        Path(OUT).write_text(json.dumps(result, indent=1) + "\n")
    assert (missed, false) == ([], [])
