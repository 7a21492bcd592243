from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import requests
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    RESTError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from pyiceberg.table import Transaction
from pyiceberg.table.update import SetPropertiesUpdate, SetSnapshotRefUpdate
from pyiceberg.types import LongType, NestedField

from catalog.digests import DIGEST_ALGORITHM
from catalog.errors import CatalogUnreachable, SchemaConflict
from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.commit import (
    Backoff,
    CommitOutcome,
    Committed,
    LandedCommit,
    MovedPartition,
    OffsetsMoved,
    Unresolved,
    commit,
    commit_once,
)
from catalog.iceberg.offsets import encode_offsets
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import PartitionOffset, TranslatedRange, new_id
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, change, span
from tests.support.catalog.table_changes import updates_of


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path)


def run(
    catalog: MemoryCatalog,
    *ranges: TranslatedRange,
    commit_id: str | None = None,
    attempts: int = 4,
    schema_change: SchemaChange | None = None,
) -> CommitOutcome:
    return commit(
        load=catalog.load,
        send=catalog.send,
        ranges=ranges,
        change=schema_change,
        commit_id=commit_id or new_id(),
        backoff=Backoff(attempts=attempts, pause=lambda _: None),
    )


def manifests_on_disk(tmp_path: Path) -> int:
    return len([path for path in (tmp_path / "metadata").iterdir() if path.suffix == ".avro"])


def test_files_and_offsets_arrive_in_one_snapshot(catalog: MemoryCatalog):
    first, second, third = span(0, 5, 10), span(0, 10, 12), span(3, 0, 4)
    outcome = run(catalog, second, third, first, commit_id="ID")
    expected = {
        0: PartitionOffset(next_offset=12, leader_epoch=3),
        3: PartitionOffset(next_offset=4, leader_epoch=3),
    }
    assert isinstance(outcome, Committed)
    assert outcome.offsets == expected
    assert catalog.load().offsets == expected
    assert catalog.paths() == sorted(range_.file.path for range_ in (first, second, third) if range_.file)
    (snapshot,) = catalog.metadata.snapshots
    assert snapshot.snapshot_id == outcome.snapshot_id
    assert snapshot.summary is not None
    assert snapshot.summary["archiver.commit-id"] == "ID"
    assert snapshot.summary["archiver.ranges"] == '{"0":[5,12],"3":[0,4]}'
    assert snapshot.summary["added-records"] == "11"


def test_a_snapshot_says_the_sum_of_its_files_digests(catalog: MemoryCatalog):
    digests = ("f" * 32, "0" * 31 + "3")
    ranges = [with_digest(span(partition, 0, 5), digest) for partition, digest in enumerate(digests)]
    assert isinstance(run(catalog, *ranges, span(2, 0, 5, with_file=False)), Committed)
    assert isinstance(run(catalog, with_digest(span(3, 0, 5), digests[0]), span(4, 0, 5)), Committed)
    counted, unknown = (snapshot.summary for snapshot in catalog.metadata.snapshots)
    assert counted is not None
    assert (counted["archiver.digest"], counted["archiver.digest-algorithm"]) == ("0" * 31 + "2", DIGEST_ALGORITHM)
    assert unknown is not None
    assert "archiver.digest" not in unknown.additional_properties


def with_digest(one: TranslatedRange, digest: str) -> TranslatedRange:
    assert one.file is not None
    return replace(one, files=(replace(one.file, digest=digest),))


def test_ranges_without_files_make_an_empty_snapshot(catalog: MemoryCatalog):
    assert isinstance(run(catalog, span(0, 0, 9, with_file=False)), Committed)
    assert catalog.load().offsets[0].next_offset == 9
    assert len(catalog.metadata.snapshots) == 1
    assert catalog.paths() == []


def test_a_partition_that_stands_elsewhere_moves_nothing(catalog: MemoryCatalog):
    run(catalog, span(0, 0, 10), span(1, 0, 10))
    outcome = run(catalog, span(0, 10, 20), span(1, 5, 20))
    assert outcome == OffsetsMoved(partitions=(MovedPartition(partition=1, expected=5, found=10),))
    assert len(catalog.metadata.snapshots) == 1


def test_ranges_must_be_a_chain(catalog: MemoryCatalog):
    with pytest.raises(ValueError, match=r"\[0, 5\) then \[6, 9\)"):
        run(catalog, span(0, 0, 5), span(0, 6, 9))
    with pytest.raises(ValueError, match="at least one"):
        run(catalog)


LANDED = ["lose_answer", "deliver_twice", "delay", "refuse_landed", "deny_landed", "expire_landed"]


@pytest.mark.parametrize("fate", LANDED)
def test_a_commit_that_landed_is_found_by_its_id(catalog: MemoryCatalog, tmp_path: Path, fate: str):
    run(catalog, span(1, 0, 10))
    catalog.script.append(getattr(catalog, fate))
    outcome = run(catalog, span(0, 0, 10))
    assert isinstance(outcome, Committed)
    assert catalog.metadata.current_snapshot_id == outcome.snapshot_id
    assert len(catalog.metadata.snapshots) == 2
    assert len(catalog.paths()) == 2
    assert manifests_on_disk(tmp_path) == 4


@pytest.mark.parametrize("behind", [1, 2, 3])
@pytest.mark.parametrize("fate", LANDED)
def test_an_older_load_deletes_nothing_of_a_landed_commit(catalog: MemoryCatalog, fate: str, behind: int):
    for start in (0, 10, 20):
        run(catalog, span(1, start, start + 10))
    catalog.script.append(getattr(catalog, fate))
    catalog.older_loads = [0, behind, behind]
    try:
        outcome = run(catalog, span(0, 0, 10), commit_id="ID", attempts=6)
    except (BadRequestError, ForbiddenError, AuthorizationExpiredError):
        assert behind == 1  # the table as it was before the attempt: it can't show what became of it
    else:
        assert isinstance(outcome, Committed)
    assert len(catalog.paths()) == 4
    assert isinstance(run(catalog, span(0, 0, 10), commit_id="ID"), Committed)
    assert len(catalog.paths()) == 4


def test_attempt_is_kept_while_the_branch_may_return(catalog: MemoryCatalog):
    first, second = (run(catalog, span(1, start, start + 10)) for start in (0, 10))
    assert isinstance(first, Committed)
    assert isinstance(second, Committed)
    late: list[Attempt] = []

    def hold(attempt: Attempt) -> None:
        late.append(attempt)
        catalog.change(set_main(first.snapshot_id))
        raise requests.ReadTimeout

    def forward(attempt: Attempt) -> None:
        catalog.change(set_main(second.snapshot_id))
        catalog.apply(late[0])
        catalog.apply(attempt)

    catalog.script = [hold, forward]
    done = commit_once(
        load=catalog.load,
        send=catalog.send,
        obstacle=lambda _: None,
        attempt=lambda table: prepare(table, [span(0, 0, 10)], change=None, commit_id="ID"),
        commit_id="ID",
        backoff=Backoff(attempts=4, pause=lambda _: None),
    )
    assert isinstance(done, LandedCommit)
    assert done.snapshot_id == late[0].snapshot_id
    assert len(catalog.paths()) == 3


def set_main(snapshot_id: int) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id})


def test_loads_that_stay_older_leave_the_outcome_open(catalog: MemoryCatalog, tmp_path: Path):
    for start in (0, 10):
        run(catalog, span(1, start, start + 10))
    before = manifests_on_disk(tmp_path)
    catalog.script = [catalog.lose_request]
    catalog.older_loads = [0, 1, 1, 1]
    outcome = run(catalog, span(0, 0, 10))
    assert isinstance(outcome, Unresolved)
    assert "older state of the table" in outcome.reason
    assert "never arrived" in outcome.reason
    assert manifests_on_disk(tmp_path) == before + 2


def test_attempt_whose_number_was_taken_is_prepared_again(catalog: MemoryCatalog):
    run(catalog, span(0, 0, 10))

    def lose(attempt: Attempt) -> None:
        catalog.move_branch()
        catalog.apply(attempt)

    catalog.script.append(lose)
    assert isinstance(run(catalog, span(0, 10, 20)), Committed)
    assert len(catalog.attempts) == 3
    assert catalog.load().offsets[0].next_offset == 20
    assert len(catalog.paths()) == 2


def test_a_bad_request_is_raised_if_the_table_has_not_moved(catalog: MemoryCatalog):
    def refuse(_: Attempt) -> None:
        raise BadRequestError("no such column")

    run(catalog, span(0, 0, 10))
    catalog.script = [refuse]
    with pytest.raises(BadRequestError, match="no such column"):
        run(catalog, span(0, 10, 20))
    assert len(catalog.attempts) == 2


@pytest.mark.parametrize("fate", ["lose_request", "fail", "conflict"])
def test_lost_commit_is_sent_again_with_the_same_files(catalog: MemoryCatalog, tmp_path: Path, fate: str):
    run(catalog, span(1, 0, 10, with_file=False))
    before = manifests_on_disk(tmp_path)
    catalog.script += [getattr(catalog, fate)] * 2
    range_ = span(0, 0, 10)
    assert isinstance(run(catalog, range_), Committed)
    assert len(catalog.attempts) == 4
    assert [range_.file.path] == catalog.paths() if range_.file else False
    assert manifests_on_disk(tmp_path) == before + 2


def test_the_same_commit_may_be_asked_for_again(catalog: MemoryCatalog):
    range_ = span(0, 0, 10)
    first = run(catalog, range_, commit_id="ID")
    run(catalog, span(0, 10, 20))
    again = run(catalog, range_, commit_id="ID")
    assert isinstance(first, Committed)
    assert isinstance(again, Committed)
    assert again.snapshot_id == first.snapshot_id
    assert len(catalog.metadata.snapshots) == 2


def test_a_rival_with_the_same_offsets_wins_once(catalog: MemoryCatalog):
    rival = span(0, 0, 10)

    def lose(attempt: Attempt) -> None:
        catalog.apply(prepare(catalog.load(), [rival], change=None, commit_id=new_id()))
        catalog.apply(attempt)

    catalog.script.append(lose)
    outcome = run(catalog, span(0, 0, 10))
    assert outcome == OffsetsMoved(partitions=(MovedPartition(partition=0, expected=0, found=10),))
    assert rival.file is not None
    assert catalog.paths() == [rival.file.path]


def test_a_rival_on_another_partition_is_stepped_around(catalog: MemoryCatalog, tmp_path: Path):
    run(catalog, span(2, 0, 10))

    def lose(attempt: Attempt) -> None:
        catalog.apply(prepare(catalog.load(), [span(1, 0, 10)], change=None, commit_id=new_id()))
        catalog.apply(attempt)

    catalog.script.append(lose)
    assert isinstance(run(catalog, span(0, 0, 10)), Committed)
    assert {number: offset.next_offset for number, offset in catalog.load().offsets.items()} == {0: 10, 1: 10, 2: 10}
    assert len(catalog.paths()) == 3
    assert manifests_on_disk(tmp_path) == 6  # two files for each snapshot: those of the lost attempt are gone


def test_an_answer_that_never_comes_leaves_the_files_alone(catalog: MemoryCatalog, tmp_path: Path):
    catalog.script += [catalog.lose_request] * 4
    outcome = run(catalog, span(0, 0, 10), commit_id="ID")
    assert isinstance(outcome, Unresolved)
    assert (outcome.commit_id, outcome.attempts) == ("ID", 4)
    assert "never arrived" in outcome.reason
    assert manifests_on_disk(tmp_path) == 8  # any of the four may still arrive


def test_commit_is_unresolved_if_the_catalog_disappears(catalog: MemoryCatalog):
    def lose(attempt: Attempt) -> None:
        catalog.unreachable_loads = 9
        catalog.lose_answer(attempt)

    catalog.script.append(lose)
    range_ = span(0, 0, 10)
    assert isinstance(run(catalog, range_, commit_id="ID"), Unresolved)
    catalog.unreachable_loads = 0
    assert isinstance(run(catalog, range_, commit_id="ID"), Committed)
    assert len(catalog.metadata.snapshots) == 1


def test_a_catalog_that_is_away_from_the_start_is_an_error(catalog: MemoryCatalog):
    catalog.unreachable_loads = 1
    with pytest.raises(CatalogUnreachable):
        run(catalog, span(0, 0, 10))
    assert catalog.attempts == []


def test_a_refusal_is_not_tried_again(catalog: MemoryCatalog):
    def refuse(_: Attempt) -> None:
        raise ForbiddenError("not yours")

    catalog.script.append(refuse)
    with pytest.raises(ForbiddenError):
        run(catalog, span(0, 0, 10))
    assert len(catalog.attempts) == 1


@pytest.mark.parametrize(
    "answer",
    [
        UnauthorizedError("401: the gateway's session is over"),
        NotImplementedError("501: no such way back"),
        AuthorizationExpiredError("419: expired"),
        CommitStateUnknownException("500: unknown"),
        RESTError("422: unprocessable"),
        RESTError("418: a proxy"),
        ForbiddenError("403: CommitStateUnknownException: the database's answer was lost"),
        BadRequestError("400: a gateway cut the request's connection"),
        CommitFailedException("409: the lock of the first attempt is still there"),
        ServiceUnavailableError("503: behind the load balancer"),
        TooManyRequestsError("429: slow down"),
        requests.ConnectionError("Connection aborted"),
    ],
)
def test_a_landed_commit_counts_after_any_answer(catalog: MemoryCatalog, answer: Exception):
    def land(attempt: Attempt) -> None:
        catalog.apply(attempt)
        raise answer

    run(catalog, span(0, 0, 10))
    catalog.script.append(land)
    assert isinstance(run(catalog, span(0, 10, 20)), Committed)
    assert len(catalog.attempts) == 2
    assert catalog.load().offsets[0].next_offset == 20
    assert len(catalog.paths()) == 2


def test_columns_change_with_the_rows_that_need_them(catalog: MemoryCatalog):
    wider = change(ID, NOTE, version=2)
    assert isinstance(run(catalog, span(0, 0, 10), schema_change=wider), Committed)
    table = catalog.load()
    assert table.schema.find_field("val.note").field_id == 102
    assert table.iceberg.metadata.current_snapshot().schema_id == table.schema.schema_id  # type: ignore[union-attr]
    assert (table.ledger_version, table.last_field_id) == (2, 102)
    assert table.properties["write.metadata.metrics.column.val.note"] == "truncate(16)"


def test_an_older_ledger_changes_no_columns(catalog: MemoryCatalog):
    renamed = NestedField(101, "number", LongType())
    run(catalog, span(0, 0, 10), schema_change=change(renamed, NOTE, version=2))
    run(catalog, span(0, 10, 20), schema_change=change(ID, version=1))
    table = catalog.load()
    assert table.schema.find_field(101).name == "number"
    assert (table.ledger_version, len(catalog.metadata.schemas)) == (2, 2)


def test_columns_that_come_back_reuse_their_schema(catalog: MemoryCatalog):
    run(catalog, span(0, 0, 10), schema_change=change(ID, NOTE, version=2))
    run(catalog, span(0, 10, 20), schema_change=change(ID, version=3, dropped=frozenset({102})))
    assert catalog.load().schema.column_names.count("val.note") == 0
    assert "write.metadata.metrics.column.val.note" not in catalog.load().properties
    run(catalog, span(0, 20, 30), schema_change=change(ID, NOTE, version=4))
    assert [schema.schema_id for schema in catalog.metadata.schemas] == [0, 1]
    assert catalog.metadata.current_schema_id == 1


def test_a_new_column_never_takes_an_id_that_others_gave(catalog: MemoryCatalog):
    def add_column(transaction: Transaction) -> None:
        transaction.update_schema().add_column(("val", "theirs"), NOTE.field_type).commit()

    catalog.change(*updates_of(catalog.load().iceberg, add_column))
    assert catalog.load().last_column_id == 102
    with pytest.raises(SchemaConflict, match="102"):
        run(catalog, span(0, 0, 10), schema_change=change(ID, NOTE, version=2))
    assert catalog.attempts == []


def test_offsets_set_by_hand_are_respected(catalog: MemoryCatalog):
    by_hand = encode_offsets({0: PartitionOffset(next_offset=77, leader_epoch=1)})
    catalog.change(SetPropertiesUpdate(updates={"archiver.offsets": by_hand}))
    assert isinstance(run(catalog, span(0, 0, 10)), OffsetsMoved)
    assert isinstance(run(catalog, span(0, 77, 80, epoch=-1)), Committed)
    assert catalog.load().offsets[0] == PartitionOffset(next_offset=80, leader_epoch=1)


def test_pauses_double_and_scatter():
    pauses: list[float] = []
    backoff = Backoff(attempts=5, first_seconds=1, longest_seconds=3, pause=pauses.append, jitter=lambda: 0.5)
    assert list(backoff) == [0, 1, 2, 3, 4]
    assert pauses == [0.75, 1.5, 2.25, 2.25]
