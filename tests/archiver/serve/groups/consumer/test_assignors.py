"""Assignors give partitions to one member."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.serve.groups.consumer.assignors import ASSIGNORS, Targets, in_ranges, uniform

TOPICS = [UUID(int=number) for number in range(1, 5)]
partitions = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))
wanted = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), min_size=1)


def places(targets: Targets) -> list[tuple[UUID, int]]:
    return sorted(partition for assigned in targets.values() for partition in assigned)


def loads(targets: Targets) -> list[int]:
    return [len(assigned) for assigned in targets.values()]


@pytest.mark.parametrize("name", ASSIGNORS)
@given(wants=wanted, there=partitions, before=st.data())
def test_each_wanted_partition_has_one_reader_that_wants_it(
    name: str, wants: dict[str, frozenset[UUID]], there: dict[UUID, int], before: st.DataObject
) -> None:
    earlier = before.draw(wanted)
    previous = ASSIGNORS[name](earlier, before.draw(partitions), {})
    targets = ASSIGNORS[name](wants, there, previous)
    assert set(targets) == set(wants)
    read = {topic for topics in wants.values() for topic in topics}
    assert places(targets) == [(topic, number) for topic in sorted(read & set(there)) for number in range(there[topic])]
    assert all(topic in wants[member] for member, assigned in targets.items() for topic, _ in assigned)


@given(members=st.sets(st.sampled_from("abcdefgh"), min_size=1), there=partitions, before=st.data())
def test_equal_subscriptions_balance_with_fewest_moves(
    members: set[str], there: dict[UUID, int], before: st.DataObject
) -> None:
    earlier = before.draw(st.sets(st.sampled_from("abcdefgh"), min_size=1))
    previous = uniform(dict.fromkeys(sorted(earlier), frozenset(TOPICS)), there, {})
    balanced = uniform(dict.fromkeys(sorted(members), frozenset(TOPICS)), there, previous)
    assert max(loads(balanced)) - min(loads(balanced)) <= 1
    least, over = divmod(sum(there.values()), len(members))
    kept = sorted((len(previous.get(member, ())) for member in members), reverse=True)
    could_stay = sum(min(count, least + (index < over)) for index, count in enumerate(kept))
    assert sum(len(balanced[member] & previous.get(member, frozenset())) for member in members) == could_stay


@given(wants=wanted, there=partitions, before=wanted)
def test_mixed_subscriptions_allow_no_better_single_move(
    wants: dict[str, frozenset[UUID]], there: dict[UUID, int], before: dict[str, frozenset[UUID]]
) -> None:
    targets = uniform(wants, there, uniform(before, there, {}))
    for assigned in targets.values():
        for topic, _ in assigned:
            readers = [member for member, topics in wants.items() if topic in topics]
            assert len(assigned) - min(len(targets[reader]) for reader in readers) <= 1


@given(wants=wanted, there=partitions)
def test_nothing_moves_when_nothing_changed(wants: dict[str, frozenset[UUID]], there: dict[UUID, int]) -> None:
    once = uniform(wants, there, {})
    assert uniform(wants, there, once) == once


def test_ranges_are_the_same_numbers_of_all_topics() -> None:
    both = frozenset(TOPICS[:2])
    counts: Mapping[UUID, int] = {TOPICS[0]: 5, TOPICS[1]: 5}
    targets = in_ranges({"a": both, "b": both}, counts, {})
    assert targets["a"] == {(topic, number) for topic in both for number in range(3)}
    assert targets["b"] == {(topic, number) for topic in both for number in range(3, 5)}
