"""Archives that are refreshed in the background."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from archiver.errors import ArchiveReplaced
from archiver.replay.consumer.open_archives import Refresher
from tests.support.timing.eventually import eventually


class Counted:
    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.refreshed = 0

    def refresh(self) -> None:
        self.refreshed += 1
        if self.failure is not None:
            raise self.failure


def test_one_that_can_t_be_refreshed_keeps_no_other_back() -> None:
    archives = [Counted(), Counted(ArchiveReplaced("the first")), Counted(ArchiveReplaced("the second")), Counted()]
    with ThreadPoolExecutor(1) as executor:
        refresher = Refresher(executor, 0.0)
        assert not refresher.step(cast("Any", archives))
        eventually(lambda: all(refresh.done() for refresh in refresher.running), "all are refreshed")
        with pytest.raises(ArchiveReplaced, match="the first"):
            refresher.step(cast("Any", archives))
    assert [archive.refreshed for archive in archives] == [1, 1, 1, 1]
