"""The kept inputs on the kernels as shipped."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import TARGETS, read_corpus
from tests.fuzz.drive import target


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    kept = read_corpus(name)
    assert len(kept) > 10
    for octets in kept:
        target(name).check(octets)
