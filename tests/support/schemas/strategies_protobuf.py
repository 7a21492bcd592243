"""Hypothesis strategies for a Protobuf schema, and bytes for it."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.support.schemas.random_choices import DrawnChoices, SeededChoices
from tests.support.schemas.random_payloads import random_payload
from tests.support.schemas.random_schemas import random_schema


@st.composite
def schemas(draw: DrawFn) -> Descriptor:
    """`t.M` with fields of all kinds; proto2 or proto3."""
    return random_schema(DrawnChoices(draw))


@st.composite
def payloads(draw: DrawFn, descriptor: Descriptor) -> bytes:
    return random_payload(DrawnChoices(draw), descriptor)


@st.composite
def many_payloads(draw: DrawFn, descriptor: Descriptor, *, count: int = 50) -> list[bytes | None]:
    """Return bytes and nulls from one drawn seed: fast, but doesn't shrink."""
    choices = SeededChoices(draw(st.integers(0, 2**32 - 1)))
    return [None if choices.integer(0, 19) == 0 else random_payload(choices, descriptor) for _ in range(count)]
