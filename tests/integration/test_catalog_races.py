"""Exactly once with lost answers and rivals."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from pyiceberg.catalog import load_catalog

from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, CommitOutcome, Committed, OffsetsMoved, Unresolved
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, TranslatedRange, new_id
from tests.support.catalog.catalog_files import assigned, bare, made, new_topic, written
from tests.support.catalog.choice import EACH_CATALOG, stack_with
from tests.support.catalog.lossy_catalog import Fault, LossyProxy, lossy_proxy
from tests.support.engine.forked import FORKED
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

QUICK = Backoff(attempts=6, first_seconds=0.01)
LANDED = [
    Fault.LOSE_ANSWER,
    Fault.SILENCE,
    Fault.ANSWER_504,
    Fault.ANSWER_409,
    Fault.ANSWER_400,
    Fault.ANSWER_403,
    Fault.DELIVER_TWICE,
]
NOT_LANDED = [Fault.LOSE_REQUEST, Fault.REFUSE_503]


@pytest.fixture(scope="module", params=EACH_CATALOG)
def stack(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_with(request.param, stack, tmp_path_factory) as judged:
        yield judged


@pytest.fixture
def topic() -> TopicRow:
    return new_topic()


@pytest.fixture
def proxy(stack: Stack) -> Iterator[LossyProxy]:
    with lossy_proxy(stack.catalog_properties["uri"]) as proxy:
        yield proxy


@pytest.fixture
def catalog(stack: Stack, proxy: LossyProxy) -> Iterator[TableCatalog]:
    properties = stack.catalog_properties | {"uri": proxy.uri}
    with TableCatalog(properties, timeout_seconds=3.0, backoff=QUICK) as catalog:
        yield catalog


@pytest.fixture
def table(stack: Stack, topic: TopicRow) -> ArchiveTable:
    with TableCatalog(stack.catalog_properties) as direct:
        return made(direct, topic, assigned("id"))


def offsets(stack: Stack, topic: TopicRow) -> Counter[tuple[int, int]]:
    """Count rows by offset. Reading all of them also shows that no manifest was deleted."""
    rows = load_catalog("judge", **stack.catalog_properties).load_table(topic.table).scan().to_arrow()
    return Counter((row["partition"], row["offset"]) for row in rows["kafka"].to_pylist())


def once(*ranges: TranslatedRange) -> Counter[tuple[int, int]]:
    return Counter(
        (range_.partition, offset) for range_ in ranges for offset in range(range_.start_offset, range_.end_offset)
    )


class TestLostAnswers:
    @pytest.mark.parametrize("fault", LANDED, ids=lambda fault: fault.name.lower())
    def test_a_commit_that_landed_is_not_repeated(
        self,
        stack: Stack,
        catalog: TableCatalog,
        proxy: LossyProxy,
        table: ArchiveTable,
        fault: Fault,
    ):
        ranges = [written(table, assigned("id"), partition, 0, 5) for partition in range(2)]
        proxy.faults.put(fault)
        outcome = catalog.commit(table, ranges, commit_id=new_id())
        assert isinstance(outcome, Committed)
        assert proxy.commits == 1
        assert offsets(stack, table.topic) == once(*ranges)

    @pytest.mark.parametrize("fault", NOT_LANDED, ids=lambda fault: fault.name.lower())
    def test_a_commit_that_did_not_land_is_repeated(
        self,
        stack: Stack,
        catalog: TableCatalog,
        proxy: LossyProxy,
        table: ArchiveTable,
        fault: Fault,
    ):
        range_ = written(table, assigned("id"), 0, 0, 5)
        for _ in range(2):
            proxy.faults.put(fault)
        assert isinstance(catalog.commit(table, [range_], commit_id=new_id()), Committed)
        assert proxy.commits == 3
        assert offsets(stack, table.topic) == once(range_)

    def test_an_unresolved_commit_is_settled_later(
        self, stack: Stack, catalog: TableCatalog, proxy: LossyProxy, table: ArchiveTable
    ):
        lost = written(table, assigned("id"), 0, 0, 5)
        for _ in range(6):
            proxy.faults.put(Fault.LOSE_REQUEST)
        assert isinstance(catalog.commit(table, [lost], commit_id=new_id()), Unresolved)
        reloaded = catalog.load(table.topic)
        assert reloaded is not None
        assert catalog.settle(reloaded, [lost]).waiting == (lost,)
        assert isinstance(catalog.commit(table, [lost], commit_id="LATER"), Committed)
        reloaded = catalog.load(table.topic)
        assert reloaded is not None
        (landed,) = catalog.settle(reloaded, [lost]).landed
        assert (landed.range, landed.commit_id) == (lost, "LATER")
        assert offsets(stack, table.topic) == once(lost)

    @pytest.mark.parametrize("struck", [(Fault.LOSE_ANSWER, 1), (Fault.LOSE_ANSWER, 2), (Fault.ANSWER_400, 2)], ids=str)
    def test_older_loads_delete_nothing_of_a_commit_that_landed(
        self,
        stack: Stack,
        catalog: TableCatalog,
        proxy: LossyProxy,
        table: ArchiveTable,
        struck: tuple[Fault, int],
    ):
        fault, behind = struck
        before = [written(table, assigned("id"), 1, start, start + 5) for start in (0, 5)]
        for range_ in before:
            assert isinstance(catalog.commit(table, [range_], commit_id=new_id()), Committed)
        current = catalog.require(table.topic)
        latest = written(table, assigned("id"), 0, 0, 5)
        proxy.faults.put(fault)
        proxy.older_loads = [behind, behind]
        outcome = catalog.commit(current, [latest], commit_id=new_id(), is_fresh=True)
        assert isinstance(outcome, Committed)
        assert proxy.older_loads == []
        assert offsets(stack, table.topic) == once(*before, latest)

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.ANSWER_400], ids=lambda fault: fault.name.lower())
    def test_a_table_whose_making_was_not_confirmed_is_used(
        self, catalog: TableCatalog, proxy: LossyProxy, topic: TopicRow, fault: Fault
    ):
        proxy.faults.put(fault)
        assert made(catalog, topic, assigned("id")).offsets == {}


class TestRivals:
    def test_commits_that_reach_the_catalog_together(self, stack: Stack, proxy: LossyProxy, table: ArchiveTable):
        proxy.gathering = threading.Barrier(3)
        shared = [[written(table, assigned("id"), 0, 0, 5)] for _ in range(2)]
        alone = [written(table, assigned("id"), 1, 0, 5)]
        properties = stack.catalog_properties | {"uri": proxy.uri}
        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(commit_alone, [properties] * 3, [table.topic] * 3, [*shared, alone]))
        assert Counter(map(type, outcomes)) == {Committed: 2, OffsetsMoved: 1}
        assert isinstance(outcomes[2], Committed)
        assert proxy.commits > 3
        assert offsets(stack, table.topic) == once(*shared[0], *alone)

    def test_of_rivals_with_the_same_offsets_one_commits(self, stack: Stack, table: ArchiveTable):
        rivals = [[written(table, assigned("id"), partition, 0, 5) for partition in range(3)] for _ in range(4)]
        outcomes = race(stack, table, rivals)
        assert Counter(map(type, outcomes)) == {Committed: 1, OffsetsMoved: 3}
        assert offsets(stack, table.topic) == once(*rivals[0])

    def test_rivals_with_partitions_of_their_own_all_commit(self, stack: Stack, table: ArchiveTable):
        rivals = [[written(table, assigned("id"), partition, 0, 5)] for partition in range(4)]
        outcomes = race(stack, table, rivals)
        assert Counter(map(type, outcomes)) == {Committed: 4}
        assert offsets(stack, table.topic) == once(*(range_ for ranges in rivals for range_ in ranges))

    def test_offsets_never_go_back(self, stack: Stack, table: ArchiveTable):
        steps = [[bare(table.topic, 0, start, start + 1)] for start in range(6)]
        outcomes = race(stack, table, steps)
        with TableCatalog(stack.catalog_properties) as catalog:
            reloaded = catalog.load(table.topic)
        assert reloaded is not None
        committed = sum(isinstance(outcome, Committed) for outcome in outcomes)
        assert reloaded.offsets[0].next_offset - first_start(reloaded) == committed


def first_start(table: ArchiveTable) -> int:
    summary = table.iceberg.metadata.snapshots[0].summary
    assert summary is not None
    return int(str(summary["archiver.ranges"]).split("[")[1].split(",")[0])


def race(stack: Stack, table: ArchiveTable, rivals: list[list[TranslatedRange]]) -> list[CommitOutcome]:
    properties = [stack.catalog_properties] * len(rivals)
    with ProcessPoolExecutor(2, mp_context=FORKED) as pool:
        return list(pool.map(commit_alone, properties, [table.topic] * len(rivals), rivals))


def commit_alone(properties: dict[str, str], topic: TopicRow, ranges: list[TranslatedRange]) -> CommitOutcome:
    backoff = Backoff(attempts=30, first_seconds=0.01, longest_seconds=0.2)
    with TableCatalog(properties, backoff=backoff) as catalog:
        table = catalog.load(topic)
        assert table is not None
        return catalog.commit(table, ranges, commit_id=new_id())
