"""Authentication over a socket."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from archiver.serve.security import Quota, Quotas
from tests.support.archive.archived_batches import archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.guarded_door import GuardedDoor, bearer, come_in, scram, send, shake
from tests.support.servers.served_lake import SECONDS, ServedLake, Wire, framed, request, response
from tests.support.timing.eventually import eventually

DONE = ErrorCode.none
FAILED = ErrorCode.sasl_authentication_failed


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return archived(tmp_path_factory.mktemp("lake"), build([Record(value=b"x")] * 10), end=10)


@pytest.fixture(scope="module")
def door() -> GuardedDoor:
    return GuardedDoor()


@pytest.fixture(scope="module")
def endpoint(lake: Lake, door: GuardedDoor) -> Iterator[ServedLake]:
    with ServedLake(lake, door=door) as served:
        yield served


@pytest.fixture
def wire(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        yield client
    with Wire(endpoint.port) as second:
        come_in(second)
        assert topics(second) == ["orders"]


def topics(wire: Wire) -> list[str]:
    return [topic.name for topic in wire.ask(request(3, 12, topics=None)).topics]


def test_plain(wire: Wire) -> None:
    come_in(wire)
    assert topics(wire) == ["orders"]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(wire: Wire, mechanism: str) -> None:
    client = scram("alice", "alice", mechanism)
    first, _ = next(client)
    assert shake(wire, mechanism) == DONE
    final, _ = client.send(send(wire, first).auth_bytes)
    answer = send(wire, final)
    with pytest.raises(StopIteration):
        client.send(answer.auth_bytes)
    assert topics(wire) == ["orders"]


def test_a_token(wire: Wire, door: GuardedDoor) -> None:
    assert shake(wire, "OAUTHBEARER") == DONE
    answer = send(wire, bearer(door.issuer.token("alice", 60.0)))
    assert (answer.error_code, answer.auth_bytes) == (DONE, b"")
    assert 50 < answer.session_lifetime.total_seconds() <= 60
    assert topics(wire) == ["orders"]


def test_a_bad_token_is_told_first_and_refused_then(wire: Wire, door: GuardedDoor) -> None:
    assert shake(wire, "OAUTHBEARER") == DONE
    answer = send(wire, bearer(door.issuer.token(life_seconds=-10.0)))
    assert (answer.error_code, answer.auth_bytes) == (DONE, b'{"status":"invalid_token"}')
    assert send(wire, b"\x01").error_code == FAILED
    assert wire.is_closed()


@pytest.mark.parametrize(
    "message",
    [b"\0alice\0bob", b"\0nobody\0nobody", b"bob\0alice\0alice", b"", b"\0alice\0", b"alice", b"\0\xff\0\xff"],
)
def test_a_wrong_password_is_refused_and_the_connection_ends(wire: Wire, message: bytes) -> None:
    assert shake(wire, "PLAIN") == DONE
    answer = send(wire, message)
    assert (answer.error_code, answer.auth_bytes) == (FAILED, b"")
    assert wire.is_closed()


def test_a_wrong_password_and_an_unknown_user_are_told_the_same(endpoint: ServedLake) -> None:
    answers = []
    for message in (b"\0alice\0wrong", b"\0nobody\0wrong"):
        with Wire(endpoint.port) as wire:
            shake(wire, "PLAIN")
            answers.append(send(wire, message))
    assert answers[0] == answers[1]


def test_an_exchange_that_was_overheard_lets_nobody_in(endpoint: ServedLake) -> None:
    client = scram("alice", "alice")
    first, _ = next(client)
    with Wire(endpoint.port) as wire:
        shake(wire, "SCRAM-SHA-256")
        final, _ = client.send(send(wire, first).auth_bytes)
        assert send(wire, final).error_code == DONE
    with Wire(endpoint.port) as wire:
        shake(wire, "SCRAM-SHA-256")
        send(wire, first)
        assert send(wire, final).error_code == FAILED
        assert wire.is_closed()


def test_unknown_mechanism_is_answered_with_known_ones(wire: Wire) -> None:
    answer = wire.ask(request(17, 1, mechanism="GSSAPI"))
    assert answer.error_code == ErrorCode.unsupported_sasl_mechanism
    assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    assert wire.is_closed()


def test_a_second_mechanism_is_refused(wire: Wire) -> None:
    assert shake(wire, "SCRAM-SHA-256") == DONE
    assert shake(wire, "PLAIN") == ErrorCode.illegal_sasl_state
    assert wire.is_closed()


def test_who_is_known_can_not_become_another(wire: Wire) -> None:
    come_in(wire)
    assert shake(wire, "PLAIN") == ErrorCode.illegal_sasl_state
    assert send(wire, b"\0bob\0bob").error_code == ErrorCode.illegal_sasl_state
    assert topics(wire) == ["orders"], "it is still who it was"


def test_without_a_handshake_nothing_is_authenticated(wire: Wire) -> None:
    assert send(wire, b"\0alice\0alice").error_code == ErrorCode.illegal_sasl_state
    assert wire.is_closed()


@pytest.mark.parametrize(("api_key", "version"), [(3, 12), (1, 12), (0, 9), (10, 4), (60, 1), (71, 0)])
def test_before_it_is_known_a_client_may_ask_for_nothing(wire: Wire, api_key: int, version: int) -> None:
    assert wire.ask(request(18, 3)).error_code == DONE
    wire.send(framed(request(api_key, version), 1))
    assert wire.is_closed()


def test_between_two_messages_it_may_not_either(wire: Wire) -> None:
    first, _ = next(scram("alice", "alice"))
    shake(wire, "SCRAM-SHA-256")
    send(wire, first)
    wire.send(framed(request(3, 12, topics=None), 1))
    assert wire.is_closed()


def test_large_frames_are_refused_before_a_client_is_known(wire: Wire) -> None:
    wire.socket.sendall(struct.pack(">i", 100_000))
    assert wire.is_closed()


def test_large_frames_are_read_afterwards(wire: Wire) -> None:
    come_in(wire)
    assert wire.ask(request(8, 2, group_id="g", name="orders", committed_metadata="x" * 30_000)).topics
    names = tuple(f"{number:05}" + "x" * 200 for number in range(500))
    from kio.schema.metadata.v12.request import MetadataRequestTopic

    asked = request(3, 12, topics=tuple(MetadataRequestTopic(topic_id=None, name=name) for name in names))
    assert len(wire.ask(asked).topics) == 500


def raw(wire: Wire, message: bytes) -> bytes:
    wire.send(message)
    return wire.receive()


def test_messages_without_a_header_after_the_first_handshake(wire: Wire) -> None:
    assert shake(wire, "PLAIN", version=0) == DONE
    assert raw(wire, b"\0alice\0alice") == b""
    assert topics(wire) == ["orders"]


def test_scram_without_a_header(wire: Wire) -> None:
    client = scram("bob", "bob")
    first, _ = next(client)
    assert shake(wire, "SCRAM-SHA-256", version=0) == DONE
    final, _ = client.send(raw(wire, first))
    with pytest.raises(StopIteration):
        client.send(raw(wire, final))
    assert topics(wire) == ["orders"]


@pytest.mark.parametrize("message", [b"\0alice\0wrong", b"", b"\x01" * 70_000])
def test_without_a_header_a_failure_is_an_end(wire: Wire, message: bytes) -> None:
    assert shake(wire, "PLAIN", version=0) == DONE
    wire.send(message)
    assert wire.is_closed()


def test_a_mechanism_that_is_not_enabled_is_unknown(lake: Lake) -> None:
    with ServedLake(lake, door=GuardedDoor(("SCRAM-SHA-512",))) as served, Wire(served.port) as wire:
        assert shake(wire, "PLAIN") == ErrorCode.unsupported_sasl_mechanism


def test_where_nobody_has_to_authenticate_nobody_can(lake: Lake) -> None:
    with ServedLake(lake) as served, Wire(served.port) as wire:
        assert shake(wire, "PLAIN") == ErrorCode.illegal_sasl_state
        assert topics(wire) == ["orders"]


def test_a_client_shows_again_who_it_is(lake: Lake) -> None:
    door = GuardedDoor()
    with ServedLake(lake, door=door) as served, Wire(served.port) as wire:
        shake(wire, "OAUTHBEARER")
        send(wire, bearer(door.issuer.token("alice", 1.5)))
        assert topics(wire) == ["orders"]
        time.sleep(1.6)
        assert shake(wire, "OAUTHBEARER") == DONE
        assert send(wire, bearer(door.issuer.token("alice", 60.0))).error_code == DONE
        assert topics(wire) == ["orders"]


def test_who_does_not_show_it_again_is_let_go(lake: Lake) -> None:
    with ServedLake(lake, door=GuardedDoor(most_seconds=1.2)) as served, Wire(served.port) as wire:
        come_in(wire)
        assert topics(wire) == ["orders"]
        time.sleep(1.3)
        wire.send(framed(request(3, 12, topics=None), 1))
        assert wire.is_closed()


@pytest.mark.parametrize(("mechanism", "message"), [("PLAIN", b"\0bob\0bob"), ("SCRAM-SHA-256", b"")])
def test_nobody_becomes_another_or_changes_the_mechanism(lake: Lake, mechanism: str, message: bytes) -> None:
    with ServedLake(lake, door=GuardedDoor(most_seconds=60.0)) as served, Wire(served.port) as wire:
        come_in(wire)
        if shake(wire, mechanism) == DONE:
            assert send(wire, message).error_code == FAILED
        assert wire.is_closed()


def test_who_takes_too_long_to_come_in_is_let_go(lake: Lake) -> None:
    with ServedLake(lake, door=GuardedDoor(), handshake_seconds=0.4) as served:
        with Wire(served.port) as wire:
            shake(wire, "PLAIN")
            assert wire.is_closed()
        with Wire(served.port) as wire:  # one byte after the other doesn't help
            began = time.monotonic()
            with suppress(ConnectionError):
                while time.monotonic() - began < SECONDS:
                    wire.socket.sendall(b"\0")
                    time.sleep(0.15)
            assert time.monotonic() - began < 3.0
        with Wire(served.port) as wire:
            come_in(wire)
            time.sleep(0.6)
            assert topics(wire) == ["orders"], "whoever is in may take their time"


def test_no_more_connections_from_one_address_than_allowed(lake: Lake) -> None:
    with ServedLake(lake, most_per_address=2) as served:
        with Wire(served.port) as first, Wire(served.port) as second:
            assert topics(first) == topics(second) == ["orders"]
            third = Wire(served.port)
            assert third.is_closed()
            elsewhere = socket.create_connection(("127.0.0.1", served.port), SECONDS, ("127.0.0.2", 0))
            third.socket.close()
            third.socket = elsewhere
            assert topics(third) == ["orders"]
            third.socket.close()
        eventually(lambda: not served.server.connections, "connections end")
        with Wire(served.port) as again:
            assert topics(again) == ["orders"]


def test_who_is_over_a_quota_is_told_and_has_to_wait(lake: Lake) -> None:
    quotas = Quotas([Quota(principal="User:alice", requests_per_second=1.0)])
    with (
        ServedLake(lake, door=GuardedDoor(), quotas=quotas) as served,
        Wire(served.port) as wire,
        Wire(served.port) as bob,
    ):
        come_in(wire)
        come_in(bob, "bob")
        began = time.monotonic()
        throttled = [wire.ask(request(3, 12, topics=None)).throttle_time.total_seconds() for _ in range(4)]
        assert throttled[0] == 0.0
        assert all(0.4 < seconds <= 1.04 for seconds in throttled[1:]), throttled
        assert time.monotonic() - began >= 0.95 * sum(throttled[:-1]), "the connection is muted for what it was told"
        assert [bob.ask(request(3, 12, topics=None)).throttle_time.total_seconds() for _ in range(20)] == [0.0] * 20


@pytest.mark.parametrize("version", [4, 12, 18])
def test_fetches_are_slowed_by_their_bytes(lake: Lake, version: int) -> None:
    quotas = Quotas([Quota(principal="User:*", bytes_per_second=200.0)])
    with ServedLake(lake, quotas=quotas) as served, Wire(served.port) as wire:
        asked = a_fetch(wire, version)
        answer = [wire.ask(asked) for _ in range(2)][1]
        assert answer.throttle_time.total_seconds() > 0
        (topic,) = getattr(answer, "responses", ())
        assert topic.partitions[0].records


def a_fetch(wire: Wire, version: int) -> Any:
    topic_id = wire.ask(request(3, 12, topics=None)).topics[0].topic_id
    return request(
        1,
        version,
        topic="orders",
        topic_id=topic_id,
        partition=0,
        fetch_offset=0,
        partition_max_bytes=1 << 20,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        forgotten_topics_data=(),
        isolation_level=0,
        current_leader_epoch=-1,
        last_fetched_epoch=-1,
        log_start_offset=-1,
    )


@pytest.mark.parametrize("version", [4, 18])
def test_who_connects_again_is_not_free_of_what_it_owes(lake: Lake, version: int) -> None:
    quotas = Quotas([Quota(principal="User:*", bytes_per_second=100.0)])
    with ServedLake(lake, quotas=quotas) as served:
        with Wire(served.port) as wire:
            asked = a_fetch(wire, version)
            while not wire.ask(asked).responses:
                pass
        for _ in range(2):
            with Wire(served.port) as wire:
                again = wire.ask(asked)
                assert not again.responses
                assert again.throttle_time.total_seconds() > 0, "an empty answer without a wait is none"
                assert getattr(again, "session_id", 0) == 0
        deadline = time.monotonic() + SECONDS
        with Wire(served.port) as wire:
            while not wire.ask(asked).responses:
                assert time.monotonic() < deadline, "what is owed is never paid"


def test_requests_are_waited_for_on_any_connection(lake: Lake) -> None:
    quotas = Quotas([Quota(principal="User:*", requests_per_second=5.0)])
    with ServedLake(lake, quotas=quotas) as served:
        began = time.monotonic()
        for _ in range(12):
            with Wire(served.port) as wire:
                wire.ask(request(3, 12, topics=None))
        assert time.monotonic() - began >= 1.0, "12 requests, 5 of them at once, 5 a second"


def test_a_refusal_is_read_in_the_form_of_its_version(endpoint: ServedLake) -> None:
    for version in range(3):
        with Wire(endpoint.port) as wire:
            shake(wire, "PLAIN")
            wire.send(framed(request(36, version, auth_bytes=b"\0a\0b"), 7))
            answer = response(load_response_schema(36, version), wire.receive(), 7)
            assert answer.error_code == FAILED
            assert answer.error_message


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_old_passwords_do_not_lock_out_their_address(endpoint: ServedLake, name: str) -> None:
    with ExitStack() as clients:
        wires = [clients.enter_context(Wire(endpoint.port)) for _ in range(20)]
        for wire in wires:
            assert shake(wire, "PLAIN") == DONE
        for wire in wires:
            wire.send(framed(request(36, 2, auth_bytes=b"\0alice\0old"), 9))
        with Wire(endpoint.port) as wire:
            began = time.monotonic()
            come_in(wire, name)
            assert time.monotonic() - began < 5.0
        for wire in wires:
            wire.receive()
