"""Hypothesis profiles: `deterministic` in CI (the default), `exhaustive` by hand with HYPOTHESIS_PROFILE=exhaustive."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "deterministic", derandomize=True, database=None, deadline=None, max_examples=60, suppress_health_check=SLOW
)
settings.register_profile("exhaustive", deadline=None, max_examples=5_000, suppress_health_check=SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))
