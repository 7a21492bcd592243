"""The soak's judge of records."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.fault.soak.checker import Defect, compare, hold_against_ledger
from tests.fault.soak.ledger import Ledger
from tests.support.archive.readers import Seen, digest_of

TOPIC = "t"
Change = Callable[[list[Seen]], list[Seen]]


def records(count: int = 200) -> list[Seen]:
    noise = Random(7)
    return [
        Seen(
            partition=partition,
            offset=offset,
            timestamp_type=1,
            timestamp=1_700_000_000_000 + offset,
            key=None if offset % 5 == 0 else b"%d" % offset,
            value=None if offset % 11 == 0 else noise.randbytes(20),
            headers=(("a", b"1"), ("a", None)) if offset % 3 == 0 else (),
        )
        for partition in range(2)
        for offset in range(count)
        if offset % 17
    ]


def altered(place: int, **fields: object) -> Change:
    return lambda found: [*found[:place], found[place]._replace(**fields), *found[place + 1 :]]  # type: ignore[arg-type]


def swapped(found: list[Seen]) -> list[Seen]:
    return [*found[:40], found[41], found[40], *found[42:]]


def phantom(found: list[Seen]) -> list[Seen]:
    return [*found[:16], found[16]._replace(offset=17), *found[16:]]


SEEDED: dict[str, tuple[Change, set[Defect]]] = {
    "a row dropped in the middle": (lambda found: [*found[:50], *found[51:]], {Defect.LOST}),
    "the last row dropped": (lambda found: found[:-1], {Defect.LOST}),
    "a partition dropped": (lambda found: [row for row in found if row.partition], {Defect.LOST}),
    "a row doubled": (lambda found: [*found[:51], found[50], *found[51:]], {Defect.DOUBLED}),
    "a file doubled": (lambda found: [*found, *found[-9:]], {Defect.DOUBLED, Defect.REORDERED}),
    "two rows swapped": (swapped, {Defect.REORDERED}),
    "a row that Kafka hasn't": (phantom, {Defect.PHANTOM}),
    "a byte changed": (altered(60, value=b"\x00"), {Defect.CHANGED}),
    "null for empty": (altered(61, key=b""), {Defect.CHANGED}),
    "a tombstone lost its mark": (altered(10, value=b""), {Defect.CHANGED}),
    "headers swapped": (altered(2, headers=(("a", None), ("a", b"1"))), {Defect.CHANGED}),
    "a millisecond": (altered(62, timestamp=1), {Defect.CHANGED}),
    "the kind of timestamp": (altered(63, timestamp_type=2), {Defect.CHANGED}),
    "two rows exchanged their offsets": (
        lambda found: [
            row._replace(offset={40: 41, 41: 40}.get(row.offset, row.offset)) if row.partition else row for row in found
        ],
        {Defect.CHANGED, Defect.REORDERED},
    ),
}


def test_what_is_right_is_called_right() -> None:
    assert compare("here", records(), records(), Ledger(), TOPIC) == []


@pytest.mark.parametrize("seeded", SEEDED)
def test_a_seeded_defect_is_found(seeded: str) -> None:
    change, defects = SEEDED[seeded]
    expected = records()
    changed = change(list(expected))
    assert changed != expected
    assert {anomaly.defect for anomaly in compare("here", expected, changed, Ledger(), TOPIC)} == defects


@pytest.mark.parametrize("seeded", set(SEEDED) - {"two rows swapped"})
def test_the_digest_sees_it_too(seeded: str) -> None:
    change, _ = SEEDED[seeded]
    assert digest_of(change(records())) != digest_of(records())


def test_order_is_nothing_to_the_digest() -> None:
    assert digest_of(swapped(records())) == digest_of(records())


def test_a_record_of_an_aborted_transaction_is_named_so() -> None:
    ledger = Ledger()
    ledger.rolled_back({(TOPIC, 0, 17): (None, b"")})
    (anomaly,) = compare("here", records(), phantom(records()), ledger, TOPIC)
    assert anomaly.defect is Defect.ABORTED
    (again,) = hold_against_ledger("here", phantom(records()), ledger, TOPIC)
    assert again.defect is Defect.ABORTED


@pytest.mark.parametrize("change", [lambda found: found[1:], altered(0, value=b"another")], ids=["lost", "changed"])
def test_what_a_producer_was_promised_is_kept(change: Change) -> None:
    ledger = Ledger()
    first = records()[0]
    ledger.committed({(TOPIC, first.partition, first.offset): (first.key, first.value)})
    assert hold_against_ledger("here", records(), ledger, TOPIC) == []
    (anomaly,) = hold_against_ledger("here", change(records()), ledger, TOPIC)
    assert anomaly.defect is Defect.ACKNOWLEDGED_LOST
    ledger.forget(TOPIC, first.partition, range(first.offset, first.offset + 1))
    assert hold_against_ledger("here", change(records()), ledger, TOPIC) == []
