"""Runs live between two renewals of their claims."""

from __future__ import annotations

import pytest

from catalog.registry.rewriting_runs import LEAST_GRACE, RewritingRun


@pytest.mark.parametrize(
    ("silent", "grace", "is_alive"),
    [
        (599.0, 0.0, True),
        (599.0, 1.0, True),
        (LEAST_GRACE, 1.0, False),
        (LEAST_GRACE, 86_400.0, True),
        (86_400.0, 86_400.0, False),
    ],
)
def test_silent_runs_are_alive(silent: float, grace: float, *, is_alive: bool) -> None:
    assert RewritingRun(id="R", begun_ms=5, silent_seconds=silent).is_alive(grace) == is_alive
