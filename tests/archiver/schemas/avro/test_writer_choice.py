"""Writers of values, by envelope id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from archiver.schemas.avro.writer_choice import OTHER_SCHEMA, WriterChoice
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.value_heads import ValueHeads


def test_writers_that_wait_for_approval_give_an_error() -> None:
    """NewerSchema would stop the topic until the approval."""
    in_force = WriterChoice(
        messages=("R",),
        fingerprints=("old",),
        registry=cast("RegistryIds[Any]", None),
        subject="orders-value",
        numbered=((7, "new"),),
    )
    waiting = replace(in_force, fingerprints=("new", "old"))
    rows, heads = np.array([0]), ValueHeads.of(pa.array([b"\0\0\0\0\7\2"], pa.binary()))
    ((_, verdict),) = in_force.beside(waiting).verdicts(7, rows, heads)
    assert verdict.error == OTHER_SCHEMA
    ((_, approved),) = waiting.verdicts(7, rows, heads)
    assert approved.error is None
