"""Tidying after commits: both steps are tried, whatever the first one says, and nothing of it fails a job."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from archiver.commit.tidying import ONE_IN, tidy, tidy_by_chance
from archiver.errors import StorageUnavailable
from catalog.errors import RegistryUnreachable
from schema_mapping.errors import ContextError
from tests.support.catalog.memory import TOPIC


@dataclass
class Topic:
    """A topic, its registry's files and its journal; a step may fail."""

    topic: Any = TOPIC
    failures: dict[str, Exception] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    trail: None = None

    @property
    def files(self) -> Any:
        return self

    @property
    def journal(self) -> Any:
        return self

    def trim(self, topic: Any) -> None:
        assert topic is TOPIC
        self._step("trim")

    def sum_up(self) -> None:
        self._step("sum up")

    def _step(self, name: str) -> None:
        self.done.append(name)
        if name in self.failures:
            raise self.failures[name]


def test_rows_are_trimmed_and_the_journal_put_together() -> None:
    topic = Topic()
    tidy(cast("Any", topic), cast("Any", topic))
    assert topic.done == ["trim", "sum up"]


@pytest.mark.parametrize("failure", [RegistryUnreachable("away"), StorageUnavailable("away")])
def test_a_step_that_fails_is_logged_and_keeps_no_other_back(
    failure: ContextError, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(failures={"trim": failure})
    with caplog.at_level(logging.WARNING):
        tidy(cast("Any", topic), cast("Any", topic))
    assert topic.done == ["trim", "sum up"]
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [failure]


def test_an_error_of_our_own_making_is_not_hidden() -> None:
    topic = Topic(failures={"trim": TypeError("a bug")})
    with pytest.raises(TypeError):
        tidy(cast("Any", topic), cast("Any", topic))


def test_it_follows_one_commit_out_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    topic, numbers = Topic(), iter(range(ONE_IN))
    monkeypatch.setattr(secrets, "randbelow", lambda below: next(numbers) % below)
    for _ in range(ONE_IN):
        tidy_by_chance(cast("Any", topic), cast("Any", topic))
    assert topic.done == ["trim", "sum up"]
