"""A deck of all faults, shuffled by a seed.

The first pass has each step and fault once, the second faults of several steps, the third several brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from random import Random
from typing import Any

from archiver.fault_points import AuditPoint, RemovalPoint
from archiver.fault_points import FaultPoint as At
from tests.fault.soak import faults
from tests.fault.soak.faults import Fault
from tests.support.catalog.lossy_catalog import Delivery
from tests.support.catalog.lossy_catalog import Fault as CommitFault
from tests.support.storage.lossy_objects import ObjectFault

PAIRED = 0.3
"""The share of rounds with a second fault, if one makes sense."""

_REPEATED = (At.BEFORE_UPLOAD, At.AFTER_UPLOAD, At.BEFORE_STAGE, At.AFTER_STAGE, At.BEFORE_COMMIT, At.AFTER_COMMIT)
_OF_THE_DRIVER = (
    At.AFTER_PLAN,
    At.BEFORE_STAGE,
    At.AFTER_STAGE,
    At.BEFORE_COMMIT,
    At.AFTER_COMMIT,
    At.AFTER_CONFIRM,
)
_PASSING = (
    ObjectFault.ERROR_500,
    ObjectFault.SLOW_DOWN,
    ObjectFault.DENIED,
    ObjectFault.CUT_UPLOAD,
    ObjectFault.CUT_DOWNLOAD,
    ObjectFault.LOSE_ANSWER,
    ObjectFault.SILENCE,
    ObjectFault.SLOW_LINK,
)
"""In this order: rounds are drawn from it."""
_ANSWERS = tuple(fault for fault in CommitFault if fault not in {CommitFault.ANSWER_400, CommitFault.ANSWER_403})
"""What befalls commits in the first passes."""
_LAST_TURN = 2
"""From this pass on the deck has all cards."""
_LATE = (Delivery.BEFORE_NEXT_LOAD, Delivery.BEFORE_NEXT_COMMIT, Delivery.AFTER_NEXT_COMMIT, Delivery.BY_HAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    number: int
    faults: tuple[Fault, ...]
    noise: Random


def deal(seed: int, number: int, *, allowed: Callable[[Fault], bool] = lambda _: True) -> Round:
    """Return round `number` (from 0). `allowed` faults may be of a later pass."""
    turn, position = _turn(number)
    cards = next(
        cards for later in count(turn) if (cards := [card for card in _shuffled(seed, later) if allowed(card)])
    )
    noise = Random(f"{seed}/{number}")
    first = cards[position % len(cards)]
    second = _second(first, noise)
    return Round(number=number, faults=(first,) if second is None else (first, second), noise=noise)


def kinds(*, allowed: Callable[[Fault], bool] = lambda _: True) -> tuple[type[Fault], ...]:
    return tuple(sorted({type(card) for card in _cards(_LAST_TURN) if allowed(card)}, key=lambda kind: kind.__name__))


def _turn(number: int) -> tuple[int, int]:
    turn, position = 0, number
    while position >= (cards := len(_cards(turn))):
        turn, position = turn + 1, position - cards
    return turn, position


@cache
def _shuffled(seed: int, turn: int) -> tuple[Fault, ...]:
    cards = _cards(turn)
    return tuple(Random(f"deck {seed}/{turn}").sample(cards, len(cards)))


@cache
def _cards(turn: int) -> tuple[Fault, ...]:
    common = (*_killed(), *_rivalled(), *_catalog(), *_store(), *_servers(), *_logs())
    match turn:
        case 0:
            return common
        case 1:
            return (*common, *_long())
        case _:
            return (*common, *_long(), *_elections(), *_others(), *_rewrites(), *_removals(), *_stale())


def _killed() -> list[Fault]:
    return [
        *(faults.KillAtPoint(point=point) for point in At),
        *(faults.KillAtPoint(point=point, passage=2) for point in _REPEATED),
        *(faults.KillAtPoint(point=point, spark=True) for point in _OF_THE_DRIVER),
        *(
            faults.KillAtPoint(point=point, spark=True)
            for point in (At.BEFORE_UPLOAD, At.AFTER_UPLOAD)
            for _ in range(3)
        ),
        *(faults.KillLater(seconds=seconds) for seconds in (0.05, 0.15, 0.3, 0.5)),
        *(faults.KillLater(seconds=seconds, spark=True) for seconds in (7.0, 9.0)),
        *(faults.Terminate(seconds=seconds) for seconds in (0.05, 0.15, 0.3)),
        *(faults.RegistryLost(point=point) for point in (At.AFTER_UPLOAD, At.AFTER_STAGE, At.AFTER_COMMIT)),
        *(faults.RegistryLost(point=At.BEFORE_COMMIT, rebuild_killed=seconds) for seconds in (0.1, 0.3)),
    ]


def _rivalled() -> list[Fault]:
    return [
        *(faults.Overtaken(point=point) for point in At if point is not At.AFTER_CONFIRM),
        *(faults.Rivals(count=count) for count in (2, 2, 3)),
        *(faults.OthersCommit() for _ in range(2)),
    ]


def _catalog() -> list[Fault]:
    hurting = [fault for fault in _ANSWERS if fault is not CommitFault.HOLD]
    return [
        *(faults.CommitFails(fault=fault, times=1) for fault in hurting),
        *(faults.CommitFails(fault=fault, times=3) for fault in hurting if fault is not CommitFault.SILENCE),
        *(faults.CommitLate(delivery=delivery, killed=False) for delivery in _LATE),
        *(faults.CommitLate(delivery=delivery, killed=True) for delivery in _LATE),
        *(faults.CatalogAway(runs=runs) for runs in (1, 3)),
        *(faults.CatalogAway(runs=1, killed=point) for point in (At.BEFORE_COMMIT, At.AFTER_COMMIT)),
    ]


def _store() -> list[Fault]:
    return [
        *(faults.StoreFails(fault=fault, times=1, skip=0) for fault in _PASSING),
        *(faults.StoreFails(fault=fault, times=1, skip=2) for fault in _PASSING),
        *(
            faults.StoreFails(fault=fault, times=30, skip=1)
            for fault in (ObjectFault.ERROR_500, ObjectFault.DENIED, ObjectFault.CUT_UPLOAD, ObjectFault.SLOW_LINK)
        ),
    ]


def _servers() -> list[Fault]:
    postgres = (At.AFTER_ASSIGN, At.AFTER_PLAN, At.BEFORE_STAGE, At.AFTER_STAGE, At.AFTER_COMMIT)
    return [
        *(faults.ServerRestarts(server="postgres", point=point, killed=True) for point in postgres),
        faults.ServerRestarts(server="kafka", point=At.AFTER_ASSIGN, killed=False),
        faults.ServerRestarts(server="kafka", point=At.AFTER_PLAN, killed=False),
        faults.ServerRestarts(server="kafka", point=At.AFTER_PLAN, killed=True),
        faults.ServerRestarts(server="kafka", point=At.AFTER_UPLOAD, killed=False),
        *(
            faults.ServerRestarts(server="seaweedfs", point=point, killed=False)
            for point in (At.BEFORE_UPLOAD, At.BEFORE_COMMIT, At.AFTER_COMMIT)
        ),
        faults.ServerStalls(server="postgres", point=At.BEFORE_STAGE, seconds=2.5),
        faults.ServerStalls(server="postgres", point=At.AFTER_COMMIT, seconds=2.5),
        faults.ServerStalls(server="kafka", point=At.AFTER_ASSIGN, seconds=3.0),
        faults.ServerStalls(server="kafka", point=At.AFTER_PLAN, seconds=3.0),
        faults.ServerStalls(server="seaweedfs", point=At.BEFORE_UPLOAD, seconds=3.0),
        faults.ServerStalls(server="seaweedfs", point=At.BEFORE_COMMIT, seconds=4.5),
    ]


def _logs() -> list[Fault]:
    return [
        *(faults.LogCut(regrown=regrown) for regrown in (False, True)),
        *(faults.RecordsDeleted(killed=point) for point in (None, At.AFTER_STAGE, At.AFTER_COMMIT)),
        faults.TopicRecreated(),
    ]


def _long() -> list[Fault]:
    steps = (At.AFTER_UPLOAD, At.AFTER_STAGE, At.AFTER_COMMIT)
    return [
        *(
            faults.RegistrySplit(point=point)
            for point in (At.AFTER_PLAN, At.AFTER_UPLOAD, At.AFTER_STAGE, At.AFTER_COMMIT)
        ),
        *(faults.OthersExpire(point=point) for point in steps),
        *(faults.KillAtPoint(point=point, spark=True) for point in (At.BEFORE_UPLOAD, *steps, *steps)),
        *(faults.OrphansRemoved(point=point) for point in (None, None, *steps)),
    ]


def _elections() -> list[Fault]:
    return [
        *(
            faults.LeaderMoves(point=point, times=times)
            for point in (At.AFTER_ASSIGN, At.AFTER_PLAN)
            for times in (1, 3)
        ),
        faults.LeaderMoves(point=At.AFTER_STAGE, times=1),
        faults.RollingRestart(point=At.AFTER_ASSIGN, killed=False),
        faults.RollingRestart(point=At.AFTER_PLAN, killed=True),
        *(faults.UncleanElection(archived=archived) for archived in (True, False, True, False)),
        *(faults.TransactionOutlives(killed=point) for point in (None, None, At.AFTER_STAGE, At.AFTER_COMMIT)),
    ]


def _others() -> list[Fault]:
    return [
        *(faults.RolledBack(snapshots=count, goes_on=goes_on) for count, goes_on in ((1, False), (1, True), (2, True))),
        faults.RolledBack(snapshots=2, goes_on=False, killed=At.AFTER_COMMIT),
        *(faults.RowsDeleted(whole=whole) for whole in (False, False, True)),
        faults.RowsDeleted(whole=False, killed=At.BEFORE_COMMIT),
        *(faults.SpecChanged(staged=staged) for staged in (False, True)),
        *(
            faults.StoreEmpty(answer=answer, deleted=deleted)
            for answer in (ObjectFault.NO_SUCH_KEY, ObjectFault.NO_SUCH_BUCKET)
            for deleted in (False, True)
        ),
        faults.ManyTopics(count=120, killed=At.AFTER_COMMIT),
        *(faults.CredentialsExpire(uses=uses, records=12_000) for uses in (3, 4)),
    ]


def _rewrites() -> list[Fault]:
    steps = (At.BEFORE_UPLOAD, At.AFTER_UPLOAD, At.AFTER_STAGE, At.BEFORE_COMMIT, At.AFTER_COMMIT, At.AFTER_CONFIRM)
    return [
        *(faults.CompactKilled(point=point) for point in steps),
        *(faults.CompactKilled(point=point, beside=True) for point in steps),
    ]


def _removals() -> list[Fault]:
    written, committed = (At.BEFORE_UPLOAD, At.AFTER_UPLOAD), (At.AFTER_STAGE, At.BEFORE_COMMIT)
    every = (*committed, At.AFTER_COMMIT, *AuditPoint, At.AFTER_CONFIRM)
    ends = (RemovalPoint.SNAPSHOTS_EXPIRED, RemovalPoint.FILES_DELETED)
    races = faults.RetireRaces
    return [
        *(races(job="expire", point=point) for point in (*every, *ends)),
        *(races(job="edge", point=point) for point in (*written, *every)),
        *(races(job="erase", point=point) for point in (*written, *every, *ends, RemovalPoint.ERASURE_NOTED)),
        *(
            races(job=job, point=point, beside=beside)
            for job, points in (
                ("expire", committed),
                ("edge", (At.AFTER_UPLOAD, At.BEFORE_COMMIT)),
                ("erase", written),
            )
            for point in points
            for beside in ("archive", "compact", "hold", "edge" if job == "erase" else "erase")
        ),
        *(races(job="erase", point=point, beside="hold") for point in (*committed, ends[0])),
        *(
            races(job="compact", point=point, beside=beside)
            for point in (At.AFTER_UPLOAD, At.BEFORE_COMMIT)
            for beside in ("expire", "edge", "erase")
        ),
        *(
            races(job="archive", point=point, beside=beside)
            for point in (At.AFTER_UPLOAD, At.AFTER_COMMIT)
            for beside in ("edge", "erase")
        ),
    ]


def _stale() -> list[Fault]:
    answers = (CommitFault.LOSE_ANSWER, CommitFault.ANSWER_400, CommitFault.ANSWER_403)
    return [
        *(faults.CommitFails(fault=fault, times=1) for fault in answers[1:]),
        *(
            faults.StaleLoad(job=job, answer=answer, behind=behind)
            for job in ("archive", "compact")
            for answer in answers
            for behind in (1, 2)
        ),
        *(faults.RetiredBeneath(reader=reader) for reader in ("consumer", "consumer", "export", "export")),
    ]


def _second(first: Fault, noise: Random) -> Fault | None:
    is_paired, choice = noise.random() < PAIRED, noise.random()
    if not is_paired:
        return None
    match first:
        case faults.KillAtPoint() | faults.KillLater() | faults.Terminate() | faults.Rivals():
            return _mistreatment(choice, noise)
        case faults.CommitFails() | faults.StoreFails() | faults.OthersCommit():
            if choice < 0.5:
                return faults.KillAtPoint(point=noise.choice(_REPEATED), passage=noise.choice((1, 1, 2)))
            return faults.Rivals(count=2) if choice < 0.7 else faults.KillLater(seconds=round(noise.uniform(0, 0.6), 2))
        case faults.Overtaken():
            return faults.CommitFails(fault=noise.choice(_answered()), times=1)
        case _:
            return None


def _mistreatment(choice: float, noise: Random) -> Fault:
    if choice < 0.45:
        return faults.CommitFails(fault=noise.choice(_answered()), times=noise.choice((1, 2)))
    if choice < 0.9:
        options: list[Any] = [fault for fault in _PASSING if fault is not ObjectFault.SILENCE]
        return faults.StoreFails(fault=noise.choice(options), times=noise.choice((1, 3)), skip=noise.choice((0, 1)))
    return faults.OthersCommit()


def _answered() -> list[CommitFault]:
    return [fault for fault in _ANSWERS if fault not in {CommitFault.HOLD, CommitFault.SILENCE}]
