"""Fetch sessions send only changes."""

from __future__ import annotations

from collections import OrderedDict

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.fetch_sessions import (
    FINAL,
    INITIAL,
    MOST_PARTITIONS,
    FetchPosition,
    FetchSessions,
    PartitionKey,
    SessionFetch,
    SessionSlots,
)

A, B, C = ("orders", 0), ("orders", 1), ("users", 0)


def wanted(*places: PartitionKey, offset: int = 0) -> OrderedDict[PartitionKey, FetchPosition]:
    return OrderedDict((partition, FetchPosition(offset, 100)) for partition in places)


def begun(found: SessionFetch | ErrorCode) -> SessionFetch:
    assert isinstance(found, SessionFetch)
    return found


def opened(*places: PartitionKey) -> tuple[FetchSessions, int]:
    sessions = FetchSessions()
    session = begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted(*places)))
    assert session.session_id > 0
    assert not session.is_incremental
    for partition in places:
        assert session.includes(partition, (10, 0), has_news=False), "the first answer tells everything"
    return sessions, session.session_id


def test_no_session_is_opened_that_nobody_asked_for() -> None:
    sessions = FetchSessions()
    assert begun(sessions.begin(0, FINAL, by_id=False, positions=wanted(A))).session_id == 0
    assert begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted())).session_id == 0


def test_an_incremental_request_goes_on_with_what_is_known() -> None:
    sessions, number = opened(A, B)
    session = begun(sessions.begin(number, 1, by_id=False, positions=wanted(B, C, offset=7), forgotten=[A]))
    assert list(session.partitions) == [B, C]
    assert [partition.offset for partition in session.partitions.values()] == [7, 7]
    assert session.is_incremental
    assert not session.includes(B, (10, 0), has_news=False), "as it was told"
    assert session.includes(B, (11, 0), has_news=False), "the high watermark moved"
    assert not session.includes(B, (11, 0), has_news=False)
    assert session.includes(C, (3, 0), has_news=False), "never told before"
    assert session.includes(C, (3, 0), has_news=True)


def test_who_was_served_waits_behind_the_others() -> None:
    sessions, number = opened(A, B, C)
    session = begun(sessions.begin(number, 1, by_id=False, positions=wanted()))
    session.includes(A, (10, 0), has_news=True)
    assert list(begun(sessions.begin(number, 2, by_id=False, positions=wanted())).partitions) == [B, C, A]


def test_wrong_sessions_and_epochs_are_refused() -> None:
    sessions, number = opened(A)
    again = sessions.begin
    assert again(number + 1, 1, by_id=False, positions=wanted()) == ErrorCode.fetch_session_id_not_found
    assert again(number, 2, by_id=False, positions=wanted()) == ErrorCode.invalid_fetch_session_epoch
    assert again(number, 1, by_id=True, positions=wanted()) == ErrorCode.fetch_session_topic_id_error
    assert begun(again(number, 1, by_id=False, positions=wanted())).session_id == number
    assert again(number, 1, by_id=False, positions=wanted()) == ErrorCode.invalid_fetch_session_epoch, "sent twice"


def test_a_session_ends_when_its_client_says_so() -> None:
    sessions, number = opened(A)
    assert begun(sessions.begin(number, FINAL, by_id=False, positions=wanted())).session_id == 0
    assert sessions.begin(number, 1, by_id=False, positions=wanted()) == ErrorCode.fetch_session_id_not_found


def test_a_client_that_opens_one_after_the_other_holds_few() -> None:
    sessions = FetchSessions()
    numbers = [begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id for _ in range(100)]
    alive = [
        number
        for number in numbers
        if isinstance(sessions.begin(number, 1, by_id=False, positions=wanted()), SessionFetch)
    ]
    assert alive == numbers[-1:]


def test_epochs_begin_again_after_the_last_one() -> None:
    sessions, number = opened(A)
    assert sessions._session is not None
    sessions._session.epoch = 2**31 - 1
    begun(sessions.begin(number, 2**31 - 1, by_id=False, positions=wanted()))
    begun(sessions.begin(number, 1, by_id=False, positions=wanted()))


MANY: list[PartitionKey] = [("orders", number) for number in range(MOST_PARTITIONS)]


def test_partitions_beyond_a_session_are_fetched_without_one() -> None:
    sessions = FetchSessions()
    session = begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted(*MANY, C)))
    assert (session.session_id, session.is_incremental) == (0, False)
    assert list(session.partitions) == [*MANY, C]


def test_a_session_that_grows_too_large_ends() -> None:
    sessions, number = opened(*MANY)
    session = begun(sessions.begin(number, 1, by_id=False, positions=wanted(C), forgotten=[A]))
    assert list(session.partitions) == [*MANY[1:], C], "one comes, one goes"
    again = sessions.begin(number, 2, by_id=False, positions=wanted(A))
    assert again == ErrorCode.fetch_session_id_not_found, "its client sends everything next"
    assert sessions.begin(number, 3, by_id=False, positions=wanted()) == ErrorCode.fetch_session_id_not_found


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def open_in(slots: SessionSlots, payer: str, *places: PartitionKey) -> FetchSessions:
    sessions = FetchSessions(slots, payer)
    sessions.begin(0, INITIAL, by_id=False, positions=wanted(*places))
    return sessions


def test_sessions_of_all_connections_are_bounded() -> None:
    slots = SessionSlots(4, 100)
    first = [open_in(slots, "User:alice", A) for _ in range(10)]
    assert slots.sessions == 2
    second = [open_in(slots, "User:bob", A) for _ in range(10)]
    assert slots.sessions == 4
    for sessions in (*first, *second):
        sessions.close()
    assert slots.sessions == slots.partitions == 0


def test_partitions_of_all_sessions_are_bounded() -> None:
    slots = SessionSlots(100, 10)
    many = [("many", number) for number in range(4)]
    kept = [open_in(slots, name, *many) for name in ("User:alice", "User:alice", "User:bob", "User:carol")]
    assert slots.partitions == 8, "alice has half, and carol finds no room"
    small = open_in(slots, "User:carol", A)
    number = begun(small.begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id
    grown = small.begin(number, 1, by_id=False, positions=wanted(*many))
    assert grown == ErrorCode.fetch_session_id_not_found
    kept[0].close()
    assert slots.partitions == 4


def test_an_unused_session_makes_room() -> None:
    clock = Clock()
    slots = SessionSlots(2, 100, clock=clock)
    first = FetchSessions(slots, "User:alice")
    number = begun(first.begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id
    open_in(slots, "User:bob", A)
    assert begun(FetchSessions(slots, "User:carol").begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id == 0
    clock.now = 121.0
    assert begun(FetchSessions(slots, "User:carol").begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id
    assert first.begin(number, 1, by_id=False, positions={}) == ErrorCode.fetch_session_id_not_found


def test_topics_that_cannot_be_read_are_not_remembered() -> None:
    slots = SessionSlots()
    sessions = FetchSessions(slots)
    assert begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted(A), is_kept=False)).session_id == 0
    number = begun(sessions.begin(0, INITIAL, by_id=False, positions=wanted(A))).session_id
    again = sessions.begin(number, 1, by_id=False, positions=wanted(B), is_kept=False)
    assert again == ErrorCode.fetch_session_id_not_found
    assert slots.sessions == 0
