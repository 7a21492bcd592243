"""Compares records of different readings, as Jepsen's workload for Kafka.

Lost, doubled, reordered, aborted, phantom and changed records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.fault.soak.ledger import Ledger
from tests.support.archive.readers import Seen

_SHOWN = 5


class Defect(StrEnum):
    LOST = "lost"
    """Kafka has it, the archive hasn't."""
    DOUBLED = "doubled"
    """An offset is there more than once."""
    REORDERED = "reordered"
    """An offset comes after a higher one of its partition."""
    ABORTED = "aborted"
    """A record of an aborted transaction is there."""
    PHANTOM = "phantom"
    """The archive has it, Kafka hasn't."""
    CHANGED = "changed"
    """It isn't what Kafka has at that offset."""
    ACKNOWLEDGED_LOST = "acknowledged lost"
    """An acknowledged record is missing or different."""
    DIGEST = "digest"
    """A recorded digest differs from the digest of Kafka's records."""
    OFFSETS = "offsets"
    """Progress in the table, its snapshots or the registry isn't one chain up to Kafka's end."""
    FILES = "files"
    """A file is missing, referred to twice, or known to only one of table and registry."""
    BOOKS = "books"
    """The registry's account of offsets and its files say different things."""
    REFUSED = "refused"
    """A replay doesn't take the table as it is."""
    UNTOLD = "untold"
    """Something is missing, and errors, status or exit code don't say so."""
    OUTCOME = "outcome"
    """A job wrongly stopped, or wrongly didn't."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    defect: Defect
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.defect}: {self.where}: {self.text}"


def compare(where: str, expected: Sequence[Seen], found: Sequence[Seen], ledger: Ledger, topic: str) -> list[Anomaly]:
    truth = {(record.partition, record.offset): record for record in expected}
    had = Counter((record.partition, record.offset) for record in found)
    strange = [position for position in had if position not in truth]
    aborted = [position for position in strange if (topic, *position) in ledger.aborted]
    changed = [
        f"{_text((record.partition, record.offset))} ({_differing(truth[record.partition, record.offset], record)})"
        for record in found
        if (record.partition, record.offset) in truth and truth[record.partition, record.offset] != record
    ]
    sides = (
        (Defect.LOST, [position for position in truth if position not in had]),
        (Defect.DOUBLED, [position for position, times in had.items() if times > 1]),
        (Defect.REORDERED, _reordered(found)),
        (Defect.ABORTED, aborted),
        (Defect.PHANTOM, [position for position in strange if position not in set(aborted)]),
    )
    anomalies = [
        Anomaly(defect=defect, where=where, text=_listed(map(_text, places))) for defect, places in sides if places
    ]
    if changed:
        anomalies.append(Anomaly(defect=Defect.CHANGED, where=where, text=_listed(changed)))
    return anomalies


def hold_against_ledger(where: str, found: Iterable[Seen], ledger: Ledger, topic: str) -> list[Anomaly]:
    payloads = {(topic, record.partition, record.offset): (record.key, record.value) for record in found}
    broken = [
        position
        for position, payload in ledger.acknowledged.items()
        if position[0] == topic and payloads.get(position) != payload
    ]
    aborted = [position for position in payloads if position in ledger.aborted]
    sides = ((Defect.ACKNOWLEDGED_LOST, broken), (Defect.ABORTED, aborted))
    return [
        Anomaly(defect=defect, where=where, text=_listed(_text(position[1:]) for position in places))
        for defect, places in sides
        if places
    ]


def _reordered(found: Iterable[Seen]) -> list[tuple[int, int]]:
    highest: dict[int, int] = {}
    late = []
    for record in found:
        if record.offset < highest.get(record.partition, -1):
            late.append((record.partition, record.offset))
        highest[record.partition] = max(record.offset, highest.get(record.partition, -1))
    return late


def _differing(one: Seen, other: Seen) -> str:
    fields = (name for name in Seen._fields if getattr(one, name) != getattr(other, name))
    return ", ".join(f"{name} {str(getattr(other, name))[:60]}, not {str(getattr(one, name))[:60]}" for name in fields)


def _text(place: Sequence[int | str]) -> str:
    return "/".join(map(str, place))


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return f"{len(every)}: {', '.join(every[:_SHOWN])}{more}"
