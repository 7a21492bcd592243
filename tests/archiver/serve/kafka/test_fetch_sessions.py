"""Sessions remember what a client fetches, and tell again only what changed."""

from __future__ import annotations

from collections import OrderedDict

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.fetch_sessions import _MOST_PARTITIONS, FINAL, INITIAL, Begun, FetchSessions, Place, Wanted

A, B, C = ("orders", 0), ("orders", 1), ("users", 0)


def wanted(*places: Place, offset: int = 0) -> OrderedDict[Place, Wanted]:
    return OrderedDict((each, Wanted(offset, 100)) for each in places)


def begun(found: Begun | ErrorCode) -> Begun:
    assert isinstance(found, Begun)
    return found


def opened(*places: Place) -> tuple[FetchSessions, int]:
    sessions = FetchSessions()
    found = begun(sessions.begin(0, INITIAL, by_id=False, wanted=wanted(*places)))
    assert found.session_id > 0
    assert not found.is_incremental
    for each in places:
        assert found.tells(each, (10, 0), has_news=False), "the first answer tells everything"
    return sessions, found.session_id


def test_no_session_is_opened_that_nobody_asked_for() -> None:
    sessions = FetchSessions()
    assert begun(sessions.begin(0, FINAL, by_id=False, wanted=wanted(A))).session_id == 0
    assert begun(sessions.begin(0, INITIAL, by_id=False, wanted=wanted())).session_id == 0


def test_an_incremental_request_goes_on_with_what_is_known() -> None:
    sessions, number = opened(A, B)
    found = begun(sessions.begin(number, 1, by_id=False, wanted=wanted(B, C, offset=7), forgotten=[A]))
    assert list(found.partitions) == [B, C]
    assert [each.offset for each in found.partitions.values()] == [7, 7]
    assert found.is_incremental
    assert not found.tells(B, (10, 0), has_news=False), "as it was told"
    assert found.tells(B, (11, 0), has_news=False), "the high watermark moved"
    assert not found.tells(B, (11, 0), has_news=False)
    assert found.tells(C, (3, 0), has_news=False), "never told before"
    assert found.tells(C, (3, 0), has_news=True)


def test_who_was_served_waits_behind_the_others() -> None:
    sessions, number = opened(A, B, C)
    found = begun(sessions.begin(number, 1, by_id=False, wanted=wanted()))
    found.tells(A, (10, 0), has_news=True)
    assert list(begun(sessions.begin(number, 2, by_id=False, wanted=wanted())).partitions) == [B, C, A]


def test_wrong_sessions_and_epochs_are_refused() -> None:
    sessions, number = opened(A)
    again = sessions.begin
    assert again(number + 1, 1, by_id=False, wanted=wanted()) == ErrorCode.fetch_session_id_not_found
    assert again(number, 2, by_id=False, wanted=wanted()) == ErrorCode.invalid_fetch_session_epoch
    assert again(number, 1, by_id=True, wanted=wanted()) == ErrorCode.fetch_session_topic_id_error
    assert begun(again(number, 1, by_id=False, wanted=wanted())).session_id == number
    assert again(number, 1, by_id=False, wanted=wanted()) == ErrorCode.invalid_fetch_session_epoch, "sent twice"


def test_a_session_ends_when_its_client_says_so() -> None:
    sessions, number = opened(A)
    assert begun(sessions.begin(number, FINAL, by_id=False, wanted=wanted())).session_id == 0
    assert sessions.begin(number, 1, by_id=False, wanted=wanted()) == ErrorCode.fetch_session_id_not_found


def test_a_client_that_opens_one_after_the_other_holds_few() -> None:
    sessions = FetchSessions()
    numbers = [begun(sessions.begin(0, INITIAL, by_id=False, wanted=wanted(A))).session_id for _ in range(100)]
    alive = [each for each in numbers if isinstance(sessions.begin(each, 1, by_id=False, wanted=wanted()), Begun)]
    assert alive == numbers[-2:]


def test_epochs_begin_again_after_the_last_one() -> None:
    sessions, number = opened(A)
    sessions._sessions[number].epoch = 2**31 - 1
    begun(sessions.begin(number, 2**31 - 1, by_id=False, wanted=wanted()))
    begun(sessions.begin(number, 1, by_id=False, wanted=wanted()))


MANY: list[Place] = [("orders", each) for each in range(_MOST_PARTITIONS)]


def test_more_partitions_than_a_session_holds_are_fetched_without_one() -> None:
    sessions = FetchSessions()
    found = begun(sessions.begin(0, INITIAL, by_id=False, wanted=wanted(*MANY, C)))
    assert (found.session_id, found.is_incremental) == (0, False)
    assert list(found.partitions) == [*MANY, C]


def test_a_session_that_grows_too_large_ends() -> None:
    sessions, number = opened(*MANY)
    found = begun(sessions.begin(number, 1, by_id=False, wanted=wanted(C), forgotten=[A]))
    assert list(found.partitions) == [*MANY[1:], C], "one comes, one goes"
    again = sessions.begin(number, 2, by_id=False, wanted=wanted(A))
    assert again == ErrorCode.fetch_session_id_not_found, "its client sends everything next"
    assert sessions.begin(number, 3, by_id=False, wanted=wanted()) == ErrorCode.fetch_session_id_not_found
