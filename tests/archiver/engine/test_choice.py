"""Which engine a job uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from archiver.engine import choice
from archiver.engine.choice import EngineChoice
from archiver.engine.threads import ThreadEngine
from archiver.errors import ConfigError


class Started:
    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.engine = ThreadEngine(1)

    def __call__(self, options: Any, **more: Any) -> AbstractContextManager[ThreadEngine]:
        return self._session()

    @contextmanager
    def _session(self) -> Iterator[ThreadEngine]:
        self.begun += 1
        yield self.engine
        self.ended += 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    spark = Started()
    monkeypatch.setattr(choice, "start_spark", spark)
    return spark


def test_spark_starts_once_for_much_work_and_ends_with_the_job(started: Started) -> None:
    with EngineChoice({}, here_bytes=10) as engines:
        assert isinstance(engines.of_bytes(10), ThreadEngine)
        assert started.begun == 0
        assert engines.of_bytes(11) is engines.of_bytes(12) is engines.engine is started.engine
        assert (started.begun, started.ended) == (1, 0)
    assert started.ended == 1


def test_without_a_limit_no_work_is_little(started: Started) -> None:
    with EngineChoice({}) as engines:
        assert engines.of_bytes(0) is started.engine


def test_a_given_engine_does_all_work(started: Started) -> None:
    given = ThreadEngine(1)
    with EngineChoice({"no.option": "x"}, given, here_bytes=10) as engines:
        engines.check()
        assert engines.of_bytes(1) is engines.of_bytes(11) is given
    with EngineChoice({"no.option": "x"}, starts=lambda: given) as engines:
        engines.check()
        assert engines.of_bytes(11) is given
    assert started.begun == 0


def test_options_are_checked_before_any_work(started: Started) -> None:
    with pytest.raises(ConfigError, match="Options in"):
        EngineChoice({"no.option": "x"}).check()
    assert started.begun == 0
