"""The other half of the soak's quick faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fault.soak import faults
from tests.fault.soak.deck import kinds
from tests.fault.soak.results import Results
from tests.fault.soak.run import soak
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

SEED = 12


@pytest.mark.timeout(1200)
def test_other_quick_faults_leave_each_record_once(stack: Stack, tmp_path: Path) -> None:
    results, lines = Results.open(tmp_path / "faults.json", seed=SEED, resume=False), list[str]()
    played = kinds(allowed=faults.is_quick)[1::2]
    soak(stack, None, results, rounds=len(played), allowed=faults.is_quick, kinds=played, say=lines.append)
    assert [round_["faults"][0]["kind"] for round_ in results.rounds] == [kind.__name__ for kind in played]
    assert results.totals()["wrong"] == 0, "\n".join(lines)
    assert results.totals()["struck"] >= len(played) // 2, "\n".join(lines)
