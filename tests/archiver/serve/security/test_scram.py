"""SCRAM, with the RFC's vectors."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode

import pytest

from archiver.access.passwords import MECHANISMS, Mechanism, derived_keys, is_password, keys_of_password
from archiver.errors import AuthenticationFailed
from archiver.serve.security.scram import ScramExchange
from tests.support.servers.guarded_door import known_users, scram

USERS = known_users({"alice": "pencil", "a,b=c": "comma"})


def exchange(mechanism: Mechanism = "SCRAM-SHA-256") -> ScramExchange:
    return ScramExchange(mechanism, lambda name: USERS.keys_of(name, mechanism))


def test_the_example_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 7677, section 3."""
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    keys = derived_keys("SCRAM-SHA-256", "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    server = ScramExchange("SCRAM-SHA-256", lambda _: (keys, True))
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert (
        server.challenge(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert server.verdict(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [("alice", "pencil"), ("a,b=c", "comma")])
def test_a_client_is_let_in_and_knows_the_server(mechanism: Mechanism, name: str, password: str) -> None:
    server, client = exchange(mechanism), scram(name, password, mechanism)
    first, _ = next(client)
    final, _ = client.send(server.challenge(first))
    with pytest.raises(StopIteration):  # the client checks the server's signature
        client.send(server.verdict(final))
    assert server.name == name


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "pencil"), ("nobody", "")])
def test_who_is_unknown_is_refused_as_a_wrong_password_is(name: str, password: str) -> None:
    server, client = exchange(), scram(name, password)
    first, _ = next(client)
    challenge = server.challenge(first)
    final, _ = client.send(challenge)
    with pytest.raises(AuthenticationFailed, match="the user or the password is wrong"):
        server.verdict(final)
    assert b",i=4096" in challenge


def test_who_is_unknown_has_the_same_salt_each_time() -> None:
    salts = {exchange().challenge(b"n,,n=nobody,r=abc").split(b",")[1] for _ in range(3)}
    assert len(salts) == 1
    assert exchange().challenge(b"n,,n=other,r=abc").split(b",")[1] not in salts
    assert len(next(iter(salts))) == len(exchange().challenge(b"n,,n=alice,r=abc").split(b",")[1])


def test_guessed_keys_admit_no_unknown_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)
    server, client = exchange(), scram("nobody", "any")
    first, _ = next(client)
    final, _ = client.send(server.challenge(first))
    with pytest.raises(AuthenticationFailed):
        server.verdict(final)


def test_an_exchange_that_was_overheard_is_worth_nothing() -> None:
    server, client = exchange(), scram("alice", "pencil")
    first, _ = next(client)
    final, _ = client.send(server.challenge(first))
    server.verdict(final)
    again = exchange()
    again.challenge(first)
    with pytest.raises(AuthenticationFailed):
        again.verdict(final)


@pytest.mark.parametrize(
    "change",
    [
        (b"c=biws", b"c=eSws"),  # as if the client had asked for another binding
        (b",p=", b",p=AAAA"),
        (b",r=", b",r=x"),
        (b"c=biws,", b""),
        (b",p=", b",m=ext,p="),
    ],
)
def test_a_changed_final_message_is_refused(change: tuple[bytes, bytes]) -> None:
    server, client = exchange(), scram("alice", "pencil")
    first, _ = next(client)
    final, _ = client.send(server.challenge(first))
    with pytest.raises(AuthenticationFailed):
        server.verdict(final.replace(*change))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,,n=alice",
        b"n,,n=ali=ce,r=abc",
        b"n,,m=ext,n=alice,r=abc",
        b"n,,n=\xff,r=abc",
        b"n,,n=alice,r=",
    ],
)
def test_what_is_no_first_message_is_refused(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange().challenge(first)


def test_nothing_kept_tells_the_password() -> None:
    keys = keys_of_password("SCRAM-SHA-512", "pencil", 4096)
    other_keys = keys_of_password("SCRAM-SHA-512", "pencil", 4096)
    assert keys.salt != other_keys.salt
    assert keys.stored_key != other_keys.stored_key
    assert is_password(keys, "pencil")
    assert not is_password(keys, "pencil ")
    assert all(secret not in repr(keys) for secret in ("salt", "stored_key", "server_key")), "no log shows them"
