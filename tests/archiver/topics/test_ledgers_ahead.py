"""Ledgers are read a few together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self, cast

from archiver.topics.ledgers_ahead import TOGETHER, LedgersAhead
from catalog.errors import RegistryUnreachable
from catalog.model import TopicRow
from catalog.registry.ledger_rows import SeenLedger
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.errors import DescriptorError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Ledgers:
    bad: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    error: Exception = field(default_factory=lambda: RegistryUnreachable("away"))
    asked: list[list[int]] = field(default_factory=list)

    @property
    def ledger(self) -> Self:
        return self

    def read_together(self, rows: Sequence[TopicRow]) -> dict[int, SeenLedger]:
        ids = [item.id for item in rows]
        self.asked.append(ids)
        if self.bad.intersection(ids):
            raise self.error
        return {
            item: SeenLedger(state=LedgerState(last_id=item), table_uuid=None, now=NOW)
            for item in ids
            if item not in self.gone
        }


def row(number: int) -> TopicRow:
    return TopicRow(id=number, cluster_id="c", topic=f"t{number}", topic_id=None, table=f"kafka.t{number}")


def taken(ledgers: Ledgers, topics: Sequence[int], asking: Sequence[int]) -> list[int | None]:
    ahead = LedgersAhead(cast("Any", ledgers), [row(topic) for topic in topics])
    states = [ahead.take(row(item)) for item in asking]
    return [None if item is None else item.state.last_id for item in states]


def test_each_topic_gets_its_own_and_many_are_read_at_once() -> None:
    ledgers, topics = Ledgers(), range(2 * TOGETHER + 3)
    assert taken(ledgers, topics, topics) == list(topics)
    assert list(map(len, ledgers.asked)) == [TOGETHER, TOGETHER, 3]


def test_nothing_is_read_before_anybody_asks() -> None:
    ledgers = Ledgers()
    assert taken(ledgers, range(5), ()) == []
    assert ledgers.asked == []


def test_topics_that_do_not_ask_hold_up_nobody() -> None:
    topics = range(3 * TOGETHER)
    asking = [1, TOGETHER - 1, 2 * TOGETHER, 3 * TOGETHER - 1]
    assert taken(Ledgers(), topics, asking) == asking


def test_a_topic_that_was_not_named_has_none() -> None:
    assert taken(Ledgers(), range(3), [1, 99]) == [1, None]


def test_topic_gone_from_registry_has_no_ledger() -> None:
    ledgers = Ledgers(gone=frozenset([1]))
    assert taken(ledgers, range(2 * TOGETHER), [0, 1, 2, TOGETHER]) == [0, None, 2, TOGETHER]


def test_unreadable_ledger_leaves_its_batch_to_their_locks() -> None:
    for error in (RegistryUnreachable("away"), DescriptorError("a type that is not known")):
        ledgers = Ledgers(bad=frozenset([3]), error=error)
        assert taken(ledgers, range(2 * TOGETHER), [0, 3, 4, TOGETHER]) == [None, None, None, TOGETHER]
        assert len(ledgers.asked) == 2
