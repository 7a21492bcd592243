"""Tidying failures fail no job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from archiver.commit.tidying import tidy
from archiver.errors import StorageUnavailable
from catalog.errors import RegistryUnreachable
from schema_mapping.errors import ContextError
from tests.support.catalog.memory import TOPIC


@dataclass
class Topic:
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
    assert tidy(cast("Any", topic), cast("Any", topic)) == ()
    assert topic.done == ["trim", "sum up"]


@pytest.mark.parametrize("failure", [RegistryUnreachable("away"), StorageUnavailable("away")])
def test_a_failed_step_is_returned_and_stops_no_other(failure: ContextError) -> None:
    topic = Topic(failures={"trim": failure})
    assert tidy(cast("Any", topic), cast("Any", topic)) == (failure,)
    assert topic.done == ["trim", "sum up"]


def test_a_defect_is_not_hidden() -> None:
    topic = Topic(failures={"trim": TypeError("a bug")})
    with pytest.raises(TypeError):
        tidy(cast("Any", topic), cast("Any", topic))
