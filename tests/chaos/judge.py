"""Checks rows, replay and `archiver verify` after each act."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from archiver.upkeep.verify.findings import FaultKind, GapKind
from archiver.upkeep.verify.report import VerifiedTopic
from catalog.errors import RolledBack
from tests.chaos.model import Model, RecordState
from tests.chaos.other_engine import LiveFile, Place, places_of
from tests.chaos.said import Said, said_by
from tests.chaos.scene import Scene
from tests.support.archive.readers import from_archive
from tests.support.archive.registry_books import differences_of_books

_SHOWN: Final = 8
_ADVICE: Final = re.compile(r"remove (them|these|it)\b|take (them|these|rows|it)\b.*\bout|--accept-lost")


class Violation(Exception): ...


def judge(scene: Scene, model: Model) -> None:
    """Raise Violation if table, replay, registry or verdict is wrong.

    All are read at once, since nothing writes then.
    """
    with ThreadPoolExecutor(3, thread_name_prefix="judge") as pool:
        replayed = pool.submit(judge_replay, scene, model)
        differences = pool.submit(differences_of_books, scene.commands.path, scene.topic)
        said = pool.submit(said_by, scene.commands.verify)
        files = scene.other.files()
    judge_rows(files, model)
    judge_order(files)
    replayed.result()
    judge_books(differences.result())
    judge_verdict(said.result(), model)


def judge_rows(files: Iterable[LiveFile], model: Model) -> None:
    rows = Counter(place for file in files for place in places_of(file.live))
    if doubled := sorted(place for place, count in rows.items() if count > 1):
        raise Violation(f"rows are in the table more than once: {_named(doubled)}")
    if lost := sorted(set(model.live) - rows.keys()):
        raise Violation(f"rows are lost: {_named(lost)}")
    for place in sorted(rows.keys() - set(model.live) - model.alien):
        raise Violation(f"the table has a row that is {model.states.get(place, 'unknown')}: {place}")


def judge_order(files: Iterable[LiveFile]) -> None:
    for file in files:
        places = places_of(file.rows)
        if file.data.sort_order_id and places != sorted(places):
            raise Violation(f"a file claims an order that its rows don't have: {file.data.file_path}")


def judge_replay(scene: Scene, model: Model) -> None:
    """A replay gives the model's records; after a rollback it names the missing offsets."""
    try:
        replayed = from_archive(scene.commands.path, scene.topic, scene.plan.partitions)
    except Exception as error:
        if model.is_set_back and isinstance(error, RolledBack):
            return
        raise Violation(f"a replay fails: {type(error).__name__}: {error}") from error
    expected = [model.kafka[place] for place in model.live]
    if replayed == expected:
        return
    places = [(record.partition, record.offset) for record in replayed]
    if places == model.live:
        differing = [place for place, seen, kafka in zip(places, replayed, expected, strict=True) if seen != kafka]
        raise Violation(f"a replay gives other bytes than Kafka has: {_named(differing)}")
    lost, more = sorted(set(model.live) - set(places)), sorted(set(places) - set(model.live))
    raise Violation(f"a replay lacks {_named(lost)}, has beside them {_named(more)}, {len(places)} records in all")


def judge_store(stored: Mapping[str, Sequence[Place]]) -> None:
    for path, places in stored.items():
        raise Violation(f"an erasure ended, and {path} still has {_named(places)}")


def judge_books(differences: Sequence[str]) -> None:
    if differences:
        raise Violation(f"the books of the registry differ, the account's first: {'; '.join(differences[:_SHOWN])}")


def judge_verdict(said: Said, model: Model) -> None:
    if said.report is None:
        raise Violation(f"verify fails: {said}")
    report: VerifiedTopic = said.report
    faults = [f"{fault.kind}: {fault.message} ({fault.place})" for fault in report.faults]
    if not model.alien:
        judge_advice(faults)
        if any(fault.kind is FaultKind.FOREIGN for fault in report.faults):
            raise Violation(f"verify calls archived rows foreign: {faults}")
    if (model.missing or model.alien) and not faults:
        raise Violation(f"verify finds nothing wrong, and these rows are missing: {_named(model.missing)}")
    if not model.knows_all or model.alien or model.is_set_back:
        return
    if model.is_intact:
        _judge_right(report, faults, model)
    else:
        _judge_missing(report, faults, model)


def _judge_right(report: VerifiedTopic, faults: Sequence[str], model: Model) -> None:
    if faults:
        raise Violation(f"verify finds faults in a table that is right: {'; '.join(faults[:_SHOWN])}")
    if report.rows != len(model.live):
        raise Violation(f"verify proves {report.rows} records of {len(model.live)}")
    gone = len(model.of(RecordState.ERASED, RecordState.ACCEPTED))
    reported = sum(gap.count for partition in report.partitions for gap in partition.gaps if gap.kind is GapKind.ERASED)
    if reported > gone:
        raise Violation(f"verify says that {reported} records were erased, and {gone} were")


def judge_advice(texts: Iterable[str]) -> None:
    """No text advises removing rows or accepting a loss: Kafka has all records."""
    for text in texts:
        if _ADVICE.search(text):
            raise Violation(f"wrong advice: {text}")


def _judge_missing(report: VerifiedTopic, faults: Sequence[str], model: Model) -> None:
    missing = Counter(partition for partition, _ in model.missing)
    reported: Counter[int] = Counter()
    for seen in report.partitions:
        for gap in seen.gaps:
            if gap.kind is GapKind.DELETED:
                reported[seen.partition] += gap.count
    if reported != missing:
        raise Violation(
            f"verify says that {dict(reported)} rows are missing, and {dict(missing)} are: {faults[:_SHOWN]}"
        )
    if unexpected := [fault for fault in report.faults if fault.kind is not FaultKind.DELETED]:
        raise Violation(f"verify finds other faults than missing rows: {unexpected[:_SHOWN]}")


def _named(places: Sequence[Place]) -> str:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return f"{', '.join(f'{partition}-{offset}' for partition, offset in places[:_SHOWN])}{more}" or "none"
