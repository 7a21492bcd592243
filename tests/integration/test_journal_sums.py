"""Summaries of a journal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from archiver.audit.trails import find_trails
from archiver.config import load_config
from archiver.storage.journal import Journal, TableJournal
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.journal_upkeep import SumJournals, TableSums
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.verify.job import Verify, VerifyOptions
from catalog.iceberg.table_catalog import TableCatalog
from tests.fault.sum_process import sum_journal
from tests.support.archive.job_runs import archive_once, numbered, without_registry
from tests.support.engine.forked import run_forked
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object
from tests.support.storage.old_journal import entries, held
from tests.support.storage.spoiling_proxy import spoiling_proxy

pytestmark = pytest.mark.integration

KILLED = -9
LEFT = {
    "summary_written:kill": 6,
    "summary_compared:kill": 6,
    "entries_removed:kill": 5,
    "entries_removed:kill@2": 1,
}
"""How many objects are left by a kill at each step."""


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str, TableJournal]:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    for turn in range(4):
        stack.produce(topic, *numbered(range(turn * 20, turn * 20 + 20), partitions=2))
        archive_once(config, topic, engine=InlineEngine())
    assert Compact(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run().succeeded
    settings = load_config(config)
    with TableCatalog(settings.catalog) as catalog:
        table = catalog.adopt(settings.topic(topic).table, topic=topic)
    assert table is not None
    return config, topic, Journal.of(settings).of_table(table)


def commits(journal: TableJournal) -> list[str]:
    return sorted(file.name for file in journal.objects.list(str(journal.folder)) if file.name.startswith("commit-"))


def summed(config: Path, topic: str) -> TableSums:
    reports: list[TableSums] = []
    assert SumJournals(config=load_config(config), topics=(topic,), older_than=0.0).run(reports.append)
    (sums,) = reports
    return sums


def verified(config: Path, topic: str) -> None:
    report = Verify(load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(resumes=False)).run()
    assert report.succeeded, report.topics


def test_all_who_read_it_find_the_same_wherever_it_was_killed(
    stack: Stack, archived: tuple[Path, str, TableJournal]
) -> None:
    config, topic, journal = archived
    said, ranges = entries(journal), held(journal)
    assert len(commits(journal)) == 5
    singles = {commit: journal.objects.read(f"{journal.folder}/{commit}") for commit in commits(journal)}
    for fault, left in LEFT.items():
        for name in set(commits(journal)) - singles.keys():
            delete_object(journal.objects, f"{journal.folder}/{name}")
        for name, data in singles.items():
            journal.objects.write(f"{journal.folder}/{name}", data)
        assert run_forked(sum_journal, str(config), topic, fault=fault).returncode == KILLED
        assert len(commits(journal)) == left
        assert (entries(journal), held(journal)) == (said, ranges), fault
    assert summed(config, topic).sums.after == 1
    assert len(commits(journal)) == 1
    assert (entries(journal), held(journal)) == (said, ranges)

    verified(config, topic)
    (trail,) = find_trails(load_config(config), [topic])
    assert trail.check().problems == []
    fresh = without_registry(stack, config, with_journal=True)
    (rebuilt,) = Rebuild(load_config(fresh), [topic]).run()
    assert (rebuilt.from_journal, rebuilt.left) == (True, ())
    verified(fresh, topic)
    stack.produce(topic, *numbered(range(80, 100), partitions=2))
    archive_once(fresh, topic, engine=InlineEngine())

    verified(fresh, topic)
    delete_object(journal.objects, f"{journal.folder}/{commits(journal)[0]}")
    assert {str(problem.kind) for problem in trail.check().problems} == {"unjournaled"}
    assert (
        not Verify(load_config(fresh), [topic], engine=InlineEngine(), options=VerifyOptions(resumes=False))
        .run()
        .succeeded
    )


def test_a_store_that_denies_removals_keeps_both(
    archived: tuple[Path, str, TableJournal], caplog: pytest.LogCaptureFixture
) -> None:
    config, topic, journal = archived
    said = entries(journal)
    settings = load_config(config)
    with spoiling_proxy(settings.catalog["s3.endpoint"]) as proxy:
        proxy.keeps = True
        denied = config.with_name("denied.toml")
        endpoint = f'[archive]\n"journal.s3.endpoint" = "{proxy.endpoint}"'
        denied.write_text(config.read_text().replace("[archive]", endpoint, 1))
        assert Journal.of(load_config(denied)).objects != journal.objects
        with caplog.at_level(logging.WARNING):
            first, second = summed(denied, topic), summed(denied, topic)
        assert (first.sums.written, first.sums.removed, first.sums.kept) == (1, 0, 5)
        assert (second.sums.written, second.sums.kept) == (0, 5)
        assert "doesn't let" in caplog.text
    assert (len(commits(journal)), entries(journal)) == (6, said)
    verified(config, topic)
    assert summed(config, topic).sums.after == 1
