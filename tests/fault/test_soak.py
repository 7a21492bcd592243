"""Half of the soak's quick faults; test_soak_cards has the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg
import pytest
from pyiceberg.table import Table

from tests.fault.soak import faults
from tests.fault.soak.checker import Defect
from tests.fault.soak.course import Course
from tests.fault.soak.deck import kinds
from tests.fault.soak.results import Results
from tests.fault.soak.run import ground, soak
from tests.fault.soak.scene import Scene, Shape, TopicShape
from tests.fault.soak.verdict import judge, judge_whole
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

SEED = 12
PLAIN = Shape(
    topics=(TopicShape(partitions=2, append_time=False, text=False, partition_by="day"),), journal=True, cut=False
)


@pytest.mark.timeout(1200)  # the longest of all: a minute or two, and many if the machine is busy
def test_a_round_of_each_quick_kind_leaves_each_record_once(stack: Stack, tmp_path: Path) -> None:
    results, lines = Results.open(tmp_path / "faults.json", seed=SEED, resume=False), list[str]()
    played = kinds(allowed=faults.is_quick)[::2]
    soak(stack, None, results, rounds=len(played), allowed=faults.is_quick, kinds=played, say=lines.append)
    assert [round_["faults"][0]["kind"] for round_ in results.rounds] == [kind.__name__ for kind in played]
    assert results.totals()["wrong"] == 0, "\n".join(lines)
    assert results.totals()["struck"] >= len(played) // 2, "\n".join(lines)


@pytest.fixture
def archived(stack: Stack) -> Iterator[Course]:
    with ground(stack) as where:
        course = Course(Scene(where, PLAIN), None, Random(3))
        for _ in range(2):
            course.produce(300)
            course.heal()
        course.verified(judge(course.scene))
        course.verified(judge_whole(course.scene))
        assert course.anomalies == []
        assert course.records > 600
        yield course


def loaded(course: Course) -> Table:
    return course.scene.ground.stack.catalog().load_table(course.scene.first.table)


def defects(course: Course) -> set[Defect]:
    verdicts = judge(course.scene), judge_whole(course.scene)
    return {anomaly.defect for verdict in verdicts for anomaly in verdict.anomalies}


def test_a_file_gone_from_the_table_is_seen(archived: Course) -> None:
    table = loaded(archived)
    file = next(iter(table.scan().plan_files())).file
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        change.delete_data_file(file)
    assert defects(archived) == {Defect.FILES, Defect.LOST, Defect.ACKNOWLEDGED_LOST, Defect.DIGEST}


def test_a_file_that_the_table_has_twice_is_seen(archived: Course) -> None:
    table = loaded(archived)
    file = next(iter(table.scan().plan_files())).file
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as change:
        change.append_data_file(file)
    assert {Defect.FILES, Defect.DOUBLED, Defect.REFUSED} <= defects(archived)


def test_an_object_that_is_gone_is_seen(archived: Course) -> None:
    table = loaded(archived)
    table.io.delete(next(iter(table.scan().plan_files())).file.file_path)
    verdict = judge(archived.scene)
    assert {anomaly.defect for anomaly in verdict.anomalies} == {Defect.FILES}  # of what was verified before


def test_what_the_registry_has_wrong_is_seen(archived: Course) -> None:
    archived.produce(100)
    archived.heal()
    with psycopg.connect(archived.scene.dsn) as connection:
        connection.execute("UPDATE files SET digest = reverse(digest), end_offset = end_offset + 1")
    assert defects(archived) == {Defect.BOOKS, Defect.DIGEST, Defect.OFFSETS}


def test_progress_that_does_not_reach_the_end_is_seen(archived: Course) -> None:
    table = loaded(archived)
    with table.transaction() as transaction:
        transaction.set_properties({"archiver.offsets": '{"0":[1,0],"1":[1,0]}'})
    assert Defect.OFFSETS in defects(archived)
